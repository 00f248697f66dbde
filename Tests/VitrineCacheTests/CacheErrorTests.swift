import TestSupport
import Testing
import VitrineCache
import VitrineCore
import VitrineDatabase

struct CacheErrorTests {
    @Test func codesStayAsTheyAre() {
        let key: CacheKey = "lake"
        let errors: [CacheError] = [
            .notFound(key: key), .formatNotFound("small"), .invalidData(key: key, underlying: SourceFailure()),
            .notEncodable(key: key, underlying: SourceFailure()), .tooLarge(key: key, size: 2, capacity: 1),
            .keyTooLong(length: 2, limit: 1), .file(.notFound(path: "/x")), .source(key: key, underlying: SourceFailure()),
            .transform(key: key, format: "small", underlying: SourceFailure()), .cancelled(key: key),
            .invalidTags(count: 17, longest: 3),
        ]
        #expect(errors.map(\.code) == [-100, -101, -500, -510, -511, -512, -520, -530, -531, -540, -513])
        #expect(CacheError.domain == "vitrine.cache")
    }

    @Test func descriptionsNameTheKeyAndTheReason() {
        let error = CacheError.source(key: "lake", underlying: SourceFailure())
        #expect(error.description == "The source of \"lake\" failed: SourceFailure().")
        #expect(error.underlying is SourceFailure)
        #expect(error.key == "lake")
        #expect(CacheError.formatNotFound("small").description.contains("\"small\""))
        #expect(CacheError.notFound(key: CacheKey(String(repeating: "x", count: 10_000))).description.utf8.count < 300)
    }

    @Test func cacheErrorsDescribeThemselvesInOneLine() {
        let path = "/data/lake.jpg"
        let key = CacheKey(path)
        let database = DatabaseError(reason: .full, code: 13, message: "disk is full", path: path, sql: nil)
        var errors: [CacheError] = [
            .notFound(key: key), .formatNotFound("small"), .tooLarge(key: key, size: 2, capacity: 1),
            .keyTooLong(length: 2, limit: 1), .invalidTags(count: 17, longest: 3), .file(.noSpace(path: path)),
            .database(database), .cancelled(key: key),
        ]
        let underlying: [any Error] = [
            SourceFailure(), FileError.notFound(path: path), FileError.noSpace(path: path), database,
        ]
        for error in underlying {
            errors += [
                .invalidData(key: key, underlying: error), .notEncodable(key: key, underlying: error),
                .source(key: key, underlying: error), .transform(key: key, format: "small", underlying: error),
            ]
        }
        for error in errors { #expect(ErrorTextRule.violations(of: error, input: path).isEmpty) }
        let error = CacheError.source(key: "lake", underlying: FileError.notFound(path: path))
        #expect(error.description == "The source of \"lake\" failed: \(path) does not exist.")
    }

    @Test func valuesAboveTheCapacityNameTheOption() {
        #expect(CacheError.tooLarge(key: "lake", size: 2, capacity: 1).description.contains("Raise diskCapacity of"))
    }

    @Test func fileErrorsPassThrough() {
        guard case .file(.notFound("/x")) = CacheError(FileError.notFound(path: "/x"), key: "k") else {
            Issue.record("not passed through")
            return
        }
        #expect(CacheError(CancellationError(), key: "k").isCancellation)
    }
}
