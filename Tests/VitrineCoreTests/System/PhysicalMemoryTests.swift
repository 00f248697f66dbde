import Foundation
import TestSupport
import Testing
import VitrineCore

struct PhysicalMemoryTests {
    @Test func memoryThatCanBeUsedIsKnown() { #expect(PhysicalMemory.available > 1 << 20) }

    @Test(arguments: [
        ("0::/\n", ["memory.max": "1000\n"], 1000),
        ("0::/a/b\n", ["memory.max": "max\n", "a/memory.max": "500\n", "a/b/memory.max": "900\n"], 500),
        ("4:memory:/x\n1:cpu:/\n", ["memory/x/memory.limit_in_bytes": "700"], 700),
        ("0::/../a\n", ["a/memory.max": "99999999999999999999"], nil),
        ("nonsense", [:], nil),
    ] as [(String, [String: String], Int?)])
    func limitsOfControlGroupsAreRead(_ membership: String, _ files: [String: String], _ limit: Int?) throws {
        let root = try TemporaryDirectory()
        for (path, text) in files {
            let url = URL(filePath: root.path).appending(path: path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        #expect(PhysicalMemory.groupLimit(membership: Array(membership.utf8), root: root.path) == limit)
    }
}
