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
        let root = try groups(files)
        #expect(PhysicalMemory.groupLimit(membership: Array(membership.utf8), root: root.path) == limit)
    }
}

struct ProcessorCountTests {
    @Test func processorsAreCounted() { #expect((1...1_000_000).contains(ProcessorCount.active)) }

    @Test(arguments: [
        ("Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n", 2), ("Cpus_allowed:\tff,00000001\n", 9),
        ("Cpus_allowed:\t0\n", nil), ("Cpus_allowed:", nil), ("Name:\tCpus_allowed:\t3\n", nil), ("", nil),
    ] as [(String, Int?)])
    func masksOfProcessorsAreCounted(_ status: String, _ count: Int?) {
        #expect(ProcessorCount.allowed(status: Array(status.utf8)) == count)
    }

    @Test(arguments: [
        ("0::/\n", ["cpu.max": "150000 100000\n"], 2),
        ("0::/a/b\n", ["cpu.max": "max 100000\n", "a/cpu.max": "800000 100000\n", "a/b/cpu.max": "max 100000\n"], 8),
        ("0::/a/b\n", ["a/cpu.max": "800000 100000\n", "a/b/cpu.max": "20000 100000\n"], 1),
        (
            "4:cpu,cpuacct:/x\n1:memory:/\n",
            ["cpu/x/cpu.cfs_quota_us": "300000\n", "cpu/x/cpu.cfs_period_us": "100000\n"], 3
        ),
        ("4:cpu:/\n", ["cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"], nil),
        ("0::/\n", ["cpu.max": "5 0\n"], nil),
        ("0::/\n", ["cpu.max": "9223372036854775807 1\n"], .max),
        ("nonsense", ["cpu.max": "99999999999999999999 1"], nil),
    ] as [(String, [String: String], Int?)])
    func quotasOfControlGroupsAreRead(_ membership: String, _ files: [String: String], _ limit: Int?) throws {
        let root = try groups(files)
        #expect(ProcessorCount.groupLimit(membership: Array(membership.utf8), root: root.path) == limit)
    }
}

/// A directory with the files of control groups.
private func groups(_ files: [String: String]) throws -> TemporaryDirectory {
    let root = try TemporaryDirectory()
    for (path, text) in files {
        let url = URL(filePath: root.path).appending(path: path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
    }
    return root
}
