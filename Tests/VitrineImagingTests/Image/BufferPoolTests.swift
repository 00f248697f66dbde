import Testing
import VitrineCore
import VitrineImaging

struct BufferPoolTests {
    private let size = 100_000

    @Test func givesTheSameMemoryAgain() {
        let pool = BufferPool()
        let first = pool.take(size)
        pool.give(first)
        #expect(pool.contents == (size, 1))
        let second = pool.take(size - size / 10)
        #expect(second.baseAddress == first.baseAddress)
        #expect(second.count == size)
        #expect(pool.contents == (0, 0))
        pool.give(second)
    }

    @Test func givesTheBestFitAndNothingMuchLarger() {
        let pool = BufferPool()
        let sizes = [100_000, 104_000, 120_000]
        let buffers = sizes.map { pool.take($0) }
        buffers.forEach(pool.give)
        let fit = pool.take(101_000)
        #expect(fit.baseAddress == buffers[1].baseAddress)
        let none = pool.take(90_000 - 2_000)
        #expect(none.count == 88_000)
        #expect(pool.contents.count == 2)
        pool.give(fit)
        pool.give(none)
    }

    @Test func keepsWhatWasInABuffer() {
        let pool = BufferPool()
        let first = pool.take(size)
        first.initializeMemory(as: UInt8.self, repeating: 7)
        pool.give(first)
        let second = pool.take(size)
        // All but what malloc itself would write into free memory: nobody clears or frees it in between.
        #expect(second.allSatisfy { $0 == 7 })
        pool.give(second)
    }

    @Test func holdsNoMoreBytesThanItMay() {
        let pool = BufferPool()
        let buffers = (0..<4).map { _ in pool.take(3 << 19) }
        buffers.forEach(pool.give)
        #expect(pool.contents == (3 << 20, 2))
        #expect(pool.contents.byteCount <= BufferPool.maximumByteCount)
        // The oldest made room.
        let last = pool.take(3 << 19)
        #expect(last.baseAddress == buffers[3].baseAddress)
        pool.give(last)
    }

    @Test func holdsNoMoreBuffersThanItMay() {
        let pool = BufferPool()
        let buffers = (0..<20).map { _ in pool.take(size) }
        buffers.forEach(pool.give)
        #expect(pool.contents == (BufferPool.maximumCount * size, BufferPool.maximumCount))
    }

    @Test func memoryPressureEmptiesItUntilTheNextDemand() {
        let pressure = MemoryPressure()
        let pool = BufferPool(pressure: pressure)
        let buffers = (0..<3).map { _ in pool.take(size) }
        pool.give(buffers[0])
        #expect(pool.contents.count == 1)
        pressure.send(.warning)
        #expect(pool.contents == (0, 0))
        // What is freed because of the pressure is not kept.
        pool.give(buffers[1])
        #expect(pool.contents == (0, 0))
        let next = pool.take(size)
        pool.give(next)
        pool.give(buffers[2])
        #expect(pool.contents.count == 2)
        pressure.send(.critical)
        #expect(pool.contents == (0, 0))
    }

    @Test func noTwoThreadsGetTheSameMemory() async {
        let pool = BufferPool()
        let isRight = await withTaskGroup(of: Bool.self) { group in
            for id in UInt8(1)...8 {
                group.addTask {
                    for round in 0..<300 {
                        let count = 65_536 + (Int(id) * 997 + round * 131) % 8_192
                        let bytes = pool.take(count)
                        bytes.initializeMemory(as: UInt8.self, repeating: id)
                        let isMine = bytes.count >= count && bytes.allSatisfy { $0 == id }
                        pool.give(bytes)
                        if !isMine { return false }
                    }
                    return true
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(isRight)
        #expect(pool.contents.count <= BufferPool.maximumCount)
    }
}

struct ScratchMemoryTests {
    @Test(arguments: [0, 1, 65_535, 65_536, 1 << 20, 4 << 20, (4 << 20) + 1, 20_000_001])
    func hasRoomForWhatIsAskedAndIsAligned(count: Int) {
        let memory = ScratchMemory(byteCount: count)
        #expect(memory.bytes.count == count)
        #expect(UInt(bitPattern: memory.bytes.baseAddress) % 16 == 0)
        #expect(memory.bytes.allSatisfy { $0 == 0 })
        memory.bytes.initializeMemory(as: UInt8.self, repeating: 3)
        #expect(memory.bytes.allSatisfy { $0 == 3 })
    }

    @Test func givesTheTopOfALargeBlockBackAndKeepsTheRest() {
        let large = BufferPool.byteCounts.upperBound + (4 << 20)
        var memory = ScratchMemory(byteCount: large)
        memory.bytes.initializeMemory(as: UInt8.self, repeating: 9)
        memory.release(upTo: (2 << 20) + 5)
        memory.release(upTo: 1)
        // What was given back reads as zeros.
        #expect(memory.bytes[..<(2 << 20)].allSatisfy { $0 == 0 })
        #expect(memory.bytes[(2 << 20)...].allSatisfy { $0 == 9 })
    }

    @Test func refusesWhatTheSystemDoesNotHave() {
        #expect(throws: ImageError.self) { _ = try ScratchMemory(byteCount: 1 << 60, input: "huge").bytes.count }
        #expect(throws: ImageError.self) { _ = try ScratchMemory(byteCount: .max - 5, input: "huge").bytes.count }
    }

    /// Small blocks come from `malloc`, medium ones from the pool, large ones from the system.
    @Test(arguments: [1_000, 100_000, 100_000, 9_000_000])
    func freshMemoryIsZeroWhateverItHeldBefore(count: Int) {
        for _ in 0..<4 {
            let used = PixelStorage(zeroedByteCount: count)
            let work = ScratchMemory(byteCount: count)
            for bytes in [used.bytes, work.bytes] {
                #expect(bytes.allSatisfy { $0 == 0 })
                bytes.initializeMemory(as: UInt8.self, repeating: 255)
            }
        }
    }
}
