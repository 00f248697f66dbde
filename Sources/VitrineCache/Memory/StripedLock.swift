import VitrineCore

/// A lock around state that is read all the time and changed now and then. There is one lock for each processor: who
/// reads takes the one of the processor it runs on, who changes takes all.
///
/// Of a single lock the memory travels to another processor at every turn, which takes several times as long as finding
/// an entry. Readers on different processors do not meet here at all, and are in the state at the same time. The price
/// is some ten nanoseconds per processor for who changes it. The idea is that of the "big reader" locks of Linux 2.4
/// (`include/linux/brlock.h`).
///
/// Unchecked: a lock type. State and stripes live at fixed addresses; the state is changed under all the locks only,
/// a tally under its own.
@usableFromInline
package struct StripedLock<State: ~Copyable, Tally: Sendable>: ~Copyable, @unchecked Sendable {
    /// For each processor its lock and, from ``tallyOffset`` on, its tally.
    @usableFromInline let stripes: UnsafeMutableRawPointer
    @usableFromInline let stride: Int
    @usableFromInline let tallyOffset: Int
    /// The number of stripes, a power of two, minus 1.
    @usableFromInline let mask: Int
    @usableFromInline let state: UnsafeMutablePointer<State>
    @usableFromInline let processor = CurrentProcessor()

    /// Two cache lines: processors fetch them in pairs.
    private static var alignment: Int { 128 }
    /// With more stripes changing takes too long for what it saves readers: there are seldom more of them at a time.
    private static var mostStripes: Int { 8 }

    /// A lock.
    ///
    /// - Parameters:
    ///   - state: What it guards.
    ///   - tally: What each processor's readers start counting from.
    ///   - stripes: How many there are, rounded up to a power of two, for tests. By default one for each processor, at
    ///     most eight.
    package init(_ state: consuming sending State, tally: Tally, stripes count: Int = CurrentProcessor.limit) {
        var rounded = 1
        while rounded < min(count, Self.mostStripes) { rounded *= 2 }
        mask = rounded - 1
        tallyOffset = Self.round(MemoryLayout<Locked<Void>>.size, to: MemoryLayout<Tally>.alignment)
        stride = Self.round(tallyOffset + MemoryLayout<Tally>.size, to: Self.alignment)
        stripes = .allocate(byteCount: stride * rounded, alignment: Self.alignment)
        for index in 0..<rounded {
            let stripe = stripes + index * stride
            stripe.bindMemory(to: Locked<Void>.self, capacity: 1).initialize(to: Locked(()))
            (stripe + tallyOffset).bindMemory(to: Tally.self, capacity: 1).initialize(to: tally)
        }
        self.state = .allocate(capacity: 1)
        self.state.initialize(to: state)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        for index in 0...mask {
            lock(index).deinitialize(count: 1)
            tally(index).deinitialize(count: 1)
        }
        stripes.deallocate()
    }

    /// The bytes it occupies besides the state.
    package var bytes: Int { stride * (mask + 1) }

    private static func round(_ size: Int, to alignment: Int) -> Int {
        (size + alignment - 1) / alignment * alignment
    }

    @inlinable @inline(__always)
    borrowing func lock(_ index: Int) -> UnsafeMutablePointer<Locked<Void>> {
        (stripes + index &* stride).assumingMemoryBound(to: Locked<Void>.self)
    }

    @inlinable @inline(__always)
    borrowing func tally(_ index: Int) -> UnsafeMutablePointer<Tally> {
        (stripes + index &* stride + tallyOffset).assumingMemoryBound(to: Tally.self)
    }

    /// Reads, possibly while others read. What the body changes in spite of that has to be atomic, but for the tally.
    @inlinable @inline(__always)
    package borrowing func withSharedLock<Result: Sendable>(
        _ body: (borrowing State, inout Tally) -> Result
    ) -> Result {
        let index = mask == 0 ? 0 : processor.number & mask
        let tally = tally(index), state = state
        return lock(index).pointee.withLockSpinning { _ in body(state.pointee, &tally.pointee) }
    }

    /// Reads or changes, alone.
    @inlinable
    package borrowing func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let state = state
        return locked(from: 0) { body(&state.pointee) }
    }

    /// Reads or changes, alone, and sees what the readers have counted.
    package borrowing func withLock<Result: Sendable>(tallies body: (inout State, [Tally]) -> Result) -> Result {
        locked(from: 0) { body(&state.pointee, (0...mask).map { tally($0).pointee }) }
    }

    /// Takes the locks from a number on, always in this order.
    @inlinable
    borrowing func locked<Result: Sendable>(from index: Int, _ body: () -> Result) -> Result {
        if index > mask { return body() }
        return lock(index).pointee.withLockSpinning { _ in locked(from: index &+ 1, body) }
    }
}
