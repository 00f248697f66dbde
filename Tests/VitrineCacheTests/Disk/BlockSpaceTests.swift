import TestSupport
import Testing
import VitrineCache

/// The map of the blocks that bodies lie in.
@Suite struct BlockSpaceTests {
    private static func blocks(_ extents: [Extent]) -> [Int] { extents.flatMap { Array($0.start..<$0.end) } }

    private static func take(_ count: Int, _ space: inout BlockSpace) throws -> [Extent] {
        let extents = space.allocate(count)
        return try #require(extents)
    }

    /// What the next process loads.
    private static func reloaded(_ space: BlockSpace) -> BlockSpace {
        var other = BlockSpace()
        for number in 0...space.end / BlockSpace.chunkBlocks {
            guard number * BlockSpace.chunkBlocks < space.end, let bytes = space.chunk(number) else { continue }
            let isLoaded = bytes.withUnsafeBytes { other.load(number, $0) }
            #expect(isLoaded)
        }
        return other
    }

    /// Bodies come and go as in a full cache, several in a transaction.
    @Test(arguments: [200, 3000])
    func bodiesNeverShareBlocksAndTheFileDoesNotGrowWithoutNeed(bodies: Int) throws {
        var space = BlockSpace(), random = SeededGenerator(3)
        var stored: [[Extent]] = [], owners = Set<Int>(), largest = 0
        for _ in 0..<bodies * 8 / 32 {
            var free: [[Extent]] = []
            for _ in 0..<32 {
                let count = Int.random(in: 1...16, using: &random)
                let extents = try Self.take(count, &space)
                let taken = Self.blocks(extents)
                #expect(taken.count == count)
                #expect(owners.isDisjoint(with: taken))
                owners.formUnion(taken)
                stored.append(extents)
                guard stored.count > bodies else { continue }
                let victim = stored.swapRemove(at: Int.random(in: 0..<stored.count, using: &random))
                space.release(victim)
                free.append(victim)
            }
            #expect(space.used == owners.count)
            space.applyReleases()
            for extents in free { owners.subtract(Self.blocks(extents)) }
            #expect(space.used == owners.count)
            largest = max(largest, owners.count)
            #expect(space.end <= largest + BlockSpace.reserve(used: largest) + 32 * 16 * 2)
        }
        let other = Self.reloaded(space)
        #expect(other.used == owners.count)
        #expect(other.end == (owners.max() ?? 0) + 1)
        // Most bodies are in one piece.
        #expect(stored.count { $0.count > 1 } < stored.count / 2)
    }

    @Test func releasedBlocksAreNotUsedAgainInTheSameTransaction() throws {
        var space = BlockSpace()
        var bodies: [[Extent]] = []
        for _ in 0..<1000 { bodies.append(try Self.take(4, &space)) }
        for body in bodies { space.release(body) }
        let old = Set(bodies.flatMap(Self.blocks))
        for _ in 0..<100 {
            let blocks = Self.blocks(try Self.take(4, &space))
            #expect(old.isDisjoint(with: blocks))
        }
        space.applyReleases()
        #expect(space.used == 400)
        let reused = try Self.take(4, &space)
        #expect(old.contains(reused[0].start))
    }

    /// As after the capacity was lowered: the file gets shorter as bodies come and go.
    @Test func bodiesGoToTheBeginningOfAFileThatIsTooLong() throws {
        var space = BlockSpace(), random = SeededGenerator(4)
        var bodies = try (0..<4000).map { _ in try Self.take(4, &space) }
        bodies.shuffle(using: &random)
        for _ in 0..<2000 { space.release(bodies.removeLast()) }
        space.applyReleases()
        space.capacity = 9000
        #expect(space.isCrowded && space.end == 16_000)
        var turns = 0
        while space.isCrowded, turns < 1000 {
            for _ in 0..<8 {
                bodies.insert(try Self.take(4, &space), at: 0)
                space.release(bodies.removeLast())
            }
            space.applyReleases()
            space.cutEnd()
            #expect(space.used == 8000)
            turns += 1
        }
        #expect(space.end <= 9000 + 9000 / 64)
        // One turn replaces eight bodies, all turns each body once.
        #expect(turns <= 2000 / 8 + 10, "\(turns)")
        let owners = Set(bodies.flatMap { $0.flatMap { Array($0.start..<$0.end) } })
        #expect(owners.count == 8000 && owners.max() == space.end - 1)
        #expect(Self.reloaded(space).used == 8000)
    }

    @Test func bodiesAreSplitWhereNoRunIsLongEnough() throws {
        var space = BlockSpace()
        let single = try (0..<4000).map { _ in try Self.take(1, &space) }
        for number in stride(from: 0, to: 4000, by: 2) { space.release(single[number]) }
        space.applyReleases()
        let extents = try Self.take(3, &space)
        #expect(extents.count == 3)
        #expect(extents.allSatisfy { $0.count == 1 && $0.start % 2 == 0 })
        #expect(space.end == 4000)
    }

    @Test func mapsAreMadeAnewFromRows() throws {
        var space = BlockSpace()
        let bodies = try (0..<100).map { _ in try Self.take(7, &space) }
        space.release(bodies[3])
        space.beginRebuilding()
        for (number, body) in bodies.enumerated() where number != 3 { body.forEach { space.addUsed($0) } }
        // Twice, as in a damaged row.
        space.addUsed(bodies[5][0])
        // Released blocks are in use until the end of the transaction.
        #expect(space.used == 700)
        space.applyReleases()
        #expect(space.used == 693)
        #expect(Self.reloaded(space).used == 693)
    }

    @Test func damagedExtentsAndMapsAreRefused() {
        let extents = [Extent(start: 5, count: 3), Extent(start: 1 << 30, count: 1)]
        let bytes = Extent.encode(extents)
        #expect(bytes.withUnsafeBytes { Extent.decode($0) } == extents)
        #expect(bytes.dropLast().withUnsafeBytes { Extent.decode($0) } == [])
        #expect([UInt8](repeating: 0, count: 8).withUnsafeBytes { Extent.decode($0) } == [])
        #expect([UInt8](repeating: 0xFF, count: 8).withUnsafeBytes { Extent.decode($0) } == [])
        var space = BlockSpace()
        let zeros = [UInt8](repeating: 0, count: 4000)
        let loads = [(-1, 4000), (1 << 40, 4000), (0, 3999)].map { number, count in
            zeros[..<count].withUnsafeBytes { space.load(number, $0) }
        }
        #expect(loads == [false, false, false])
        // Blocks that are not in use.
        space.release([Extent(start: 1 << 30, count: 9)])
        space.applyReleases()
        #expect(space.used == 0)
    }
}

extension Array {
    /// Removes an element by moving the last one into its place.
    fileprivate mutating func swapRemove(at index: Int) -> Element {
        swapAt(index, count - 1)
        return removeLast()
    }
}
