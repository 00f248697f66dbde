import TestSupport
import Testing
import VitrineCache

struct EntryFilterTests {
    private static func version(_ number: UInt64) -> EntryFilter.Version {
        EntryFilter.Version(words: (number, 0, 0, 0, 0, 0))
    }

    /// Of 65,536 entries with two independent places each in 2^21 bits, one miss in 256 finds both taken; of twice as
    /// many, one in 64.
    @Test(arguments: [(65_536, 0.006), (131_072, 0.02)])
    func fewMissesGetPast(count: Int, limit: Double) {
        // Entries of one format: the upper 15 bits are the same.
        var random = SeededGenerator(7)
        let ids = (0..<count).map { _ in 0x1234 << 48 | Int64.random(in: 0..<1 << 48, using: &random) }
        let others = (0..<20_000).map { _ in 0x1234 << 48 | Int64.random(in: 0..<1 << 48, using: &random) }
        let filter = EntryFilter()
        #expect(filter.beginMaking(in: Self.version(1), time: 0))
        filter.finishMaking(Array(ids[..<65_536]))
        filter.advance(from: Self.version(1), to: Self.version(2), adding: Array(ids[65_536...]))
        #expect(!ids.contains { filter.excludes($0, in: Self.version(2)) })
        let past = others.count { !filter.excludes($0, in: Self.version(2)) }
        #expect(Double(past) <= limit * Double(others.count), "\(past) of \(others.count)")
        #expect(!filter.excludes(others[0], in: Self.version(1)))
    }

    @Test func aCommitThatEndsAfterTheTableIsMadeIsCarriedOn() {
        let filter = EntryFilter()
        #expect(filter.beginMaking(in: Self.version(1), time: 0))
        filter.advance(from: Self.version(1), to: Self.version(2), adding: [2])
        // Its rows are in the file, and perhaps among those that were read.
        filter.finishMaking([1])
        #expect(!filter.excludes(5, in: Self.version(3)))
        filter.advance(from: Self.version(2), to: Self.version(3), adding: [3])
        for id: Int64 in [1, 2, 3] { #expect(!filter.excludes(id, in: Self.version(3))) }
        #expect(filter.excludes(5, in: Self.version(3)))
    }

    @Test func aTableThatAnotherProcessHasOvertakenExcludesNothing() {
        let filter = EntryFilter()
        #expect(filter.beginMaking(in: Self.version(1), time: 0))
        filter.finishMaking([1])
        #expect(!filter.excludes(5, in: Self.version(2)))
        filter.advance(from: Self.version(2), to: Self.version(3), adding: [3])
        #expect(!filter.excludes(5, in: Self.version(3)) && !filter.excludes(5, in: Self.version(1)))
    }

    @Test func aNewDatabaseExcludesAllButWhatIsAdded() {
        let filter = EntryFilter()
        filter.begin(in: Self.version(1))
        #expect(filter.excludes(1, in: Self.version(1)))
        filter.advance(from: Self.version(1), to: Self.version(2), adding: [1])
        #expect(!filter.excludes(1, in: Self.version(2)) && filter.excludes(2, in: Self.version(2)))
    }
}
