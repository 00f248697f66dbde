import Foundation
import TestSupport
import Testing
import VitrineImaging

struct ByteSourceTests {
    private static let content = [UInt8](0..<100)

    /// Offsets and counts may come from a file that a custom decoder reads.
    @Test(arguments: [
        (-1, 4), (.min, .max), (100, 1), (.max, .max), (0, 0), (3, -2), (5, .min),
    ])
    func readsNothingOutsideOfTheInput(offset: Int, count: Int) throws {
        #expect(try ByteSource(bytes: Self.content, name: "bytes").bytes(at: offset, count: count).isEmpty)
        let directory = try TemporaryDirectory()
        let path = directory.file("bytes")
        try Data(Self.content).write(to: URL(filePath: path))
        #expect(try ByteSource(.file(path)).bytes(at: offset, count: count).isEmpty)
        withExtendedLifetime(directory) {}
    }

    @Test func readsUpToTheEnd() throws {
        let source = ByteSource(bytes: Self.content, name: "bytes")
        #expect(try source.bytes(at: 98, count: .max) == [98, 99])
        #expect(try source.allBytes() == Self.content)
    }
}
