import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineStores

struct StoreErrorTextTests {
    private let name = "lake.jpg"

    private struct Failure: Error {}

    @Test func storeErrorsDescribeThemselvesInOneLine() {
        let file = FileError.noSpace(path: name)
        let database = DatabaseError(reason: .full, code: 13, message: "disk is full", path: name, sql: nil)
        var errors: [StoreError] = [
            .invalidName(name, reason: "it has a slash."), .notFound(name: name), .alreadyExists(name: name),
            .image(name: name, error: .empty(input: name)),
            .image(name: name, error: .limitExceeded(input: name, limit: .pixels, actual: 2, allowed: 1)),
            .file(file), .notDurable(name: name, error: .notDurable(path: name, code: 5)), .cancelled(name: name),
            .notWatched(directory: name, reason: "too many files are open"), .database(database),
        ]
        for error: any Error in [Failure(), file, database] {
            errors.append(.invalidData(name: name, underlying: error))
            errors.append(.notEncodable(name: name, underlying: error))
        }
        for error in errors { #expect(ErrorTextRule.violations(of: error, input: name).isEmpty) }
    }

    @Test func nestedErrorsEndWithOneStop() {
        let error = StoreError.invalidData(name: name, underlying: Failure())
        #expect(error.description == "Cannot decode the value for \"\(name)\": Failure().")
    }
}
