import Foundation
import TestSupport
import Testing
import VitrineCore

@Suite struct DirectoryListingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for (name, size, date) in [("b", 3, 30.0), ("a", 9, 20), ("é", 1, 40), ("c", 3, 10)] {
            try directory.write(String(repeating: "x", count: size), to: name)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: date)], ofItemAtPath: directory.file(name))
        }
    }

    private func names(_ order: DirectoryListing.Order, ascending: Bool) throws -> [String] {
        try DirectoryListing.items(in: directory.path, by: order, ascending: ascending).map(\.name)
    }

    @Test func itemsAreInTheOrderAskedFor() throws {
        #expect(try names(.name, ascending: true) == ["a", "b", "c", "é"])
        #expect(try names(.name, ascending: false) == ["é", "c", "b", "a"])
        #expect(try names(.size, ascending: true) == ["é", "b", "c", "a"])
        #expect(try names(.size, ascending: false) == ["a", "c", "b", "é"])
        #expect(try names(.modified, ascending: true) == ["c", "a", "b", "é"])
    }

    @Test func enumerationTellsIndexesAndStops() throws {
        var seen: [String] = []
        let items = try DirectoryListing.items(in: directory.path, by: .modified, ascending: false)
        for (index, item) in items.enumerated() {
            seen.append("\(index) \(item.name) \(item.size.bytes) \(item.modified.components.seconds)")
            if index == 1 { break }
        }
        #expect(seen == ["0 é 1 40", "1 b 3 30"])
    }

    @Test func namesWithAPrefixAreFound() throws {
        for name in [".%tmp-b", ".%tmp-a", ".%tmp", "x.%tmp-"] { try directory.write("x", to: name) }
        #expect(try Directory.names(in: directory.path, prefix: ".%tmp-") == [".%tmp-a", ".%tmp-b"])
        #expect(try Directory.names(in: directory.path, prefix: "") == Directory.names(in: directory.path))
        #expect(try Directory.names(in: directory.path, prefix: "é") == ["é"])
    }

    @Test func aDirectoryThatCannotBeReadIsAnError() {
        #expect(throws: FileError.notFound(path: directory.file("none"))) {
            try DirectoryListing.items(in: directory.file("none"))
        }
    }
}
