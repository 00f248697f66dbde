import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A lock for state that is read often and changed rarely. There is one lock for each processor: a reader takes the
/// lock of its processor, a writer takes all.
///
/// The memory of a single lock moves to another processor at every use, which takes several times as long as finding an
/// entry. Readers on different processors share no memory here and access the state at the same time. The price is
/// about ten nanoseconds per processor for a writer. The idea is that of the "big reader" locks of Linux 2.4
/// (`include/linux/brlock.h`).
///
/// Unchecked: a lock type. State and stripes have fixed addresses. The state is changed under all locks only, and
/// the counts of a stripe under its own lock.
@usableFromInline
package struct StripedLock<State: ~Copyable, Counts: Sendable>: ~Copyable, @unchecked Sendable {
    /// For each processor its lock and, from ``countsOffset`` on, its counts.
    @usableFromInline let stripes: UnsafeMutableRawPointer
    @usableFromInline let stride: Int
    @usableFromInline let countsOffset: Int
    /// The number of stripes, a power of two, minus 1.
    @usableFromInline let mask: Int
    @usableFromInline let state: UnsafeMutablePointer<State>
    @usableFromInline let processor = CurrentProcessor()

    /// Two cache lines: processors fetch them in pairs.
    private static var alignment: Int { 128 }
    /// The maximum number of stripes. More would slow down writers too much; more concurrent readers are rare.
    private static var mostStripes: Int { 8 }

    /// Creates a lock.
    ///
    /// - Parameters:
    ///   - state: The guarded state.
    ///   - counts: The initial counts of each processor's readers.
    ///   - stripes: The number of stripes, rounded up to a power of two, for tests. Default: one for each processor, at
    ///     most eight.
    package init(_ state: consuming sending State, counts: Counts, stripes count: Int = CurrentProcessor.limit) {
        var rounded = 1
        while rounded < min(count, Self.mostStripes) { rounded *= 2 }
        mask = rounded - 1
        countsOffset = Self.round(MemoryLayout<Locked<Void>>.size, to: MemoryLayout<Counts>.alignment)
        stride = Self.round(countsOffset + MemoryLayout<Counts>.size, to: Self.alignment)
        stripes = .allocate(byteCount: stride * rounded, alignment: Self.alignment)
        for index in 0..<rounded {
            let stripe = stripes + index * stride
            stripe.bindMemory(to: Locked<Void>.self, capacity: 1).initialize(to: Locked(()))
            (stripe + countsOffset).bindMemory(to: Counts.self, capacity: 1).initialize(to: counts)
        }
        self.state = .allocate(capacity: 1)
        self.state.initialize(to: state)
    }

    deinit {
        state.deinitialize(count: 1)
        state.deallocate()
        for index in 0...mask {
            lock(index).deinitialize(count: 1)
            counts(index).deinitialize(count: 1)
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
    borrowing func counts(_ index: Int) -> UnsafeMutablePointer<Counts> {
        (stripes + index &* stride + countsOffset).assumingMemoryBound(to: Counts.self)
    }

    /// Reads concurrently with other readers. Apart from the counts, the body may change only atomics.
    @inlinable @inline(__always)
    package borrowing func withSharedLock<Result: Sendable>(
        _ body: (borrowing State, inout Counts) -> Result
    ) -> Result {
        let index = mask == 0 ? 0 : processor.number & mask
        let counts = counts(index), state = state
        return lock(index).pointee.withLockSpinning { _ in body(state.pointee, &counts.pointee) }
    }

    /// Reads or changes, alone.
    @inlinable
    package borrowing func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let state = state
        return locked(from: 0) { body(&state.pointee) }
    }

    /// Reads or changes the state exclusively, with the counts of the readers.
    package borrowing func withLock<Result: Sendable>(counts body: (inout State, [Counts]) -> Result) -> Result {
        locked(from: 0) { body(&state.pointee, (0...mask).map { counts($0).pointee }) }
    }

    /// Takes the locks from a number on, always in this order.
    @inlinable
    borrowing func locked<Result: Sendable>(from index: Int, _ body: () -> Result) -> Result {
        if index > mask { return body() }
        return lock(index).pointee.withLockSpinning { _ in locked(from: index &+ 1, body) }
    }
}

/// Tells on which processor the calling thread runs, in about two nanoseconds. By the time it is used the thread may
/// run on another: for choosing memory that is near, never for being alone.
@usableFromInline
package struct CurrentProcessor: Sendable {
    #if canImport(Darwin)
    /// Makes ready to ask.
    package init() {}

    /// The processor's number, counted from 0.
    @usableFromInline package var number: Int {
        var number = 0
        return pthread_cpu_number_np(&number) == 0 ? number : 0
    }
    #else
    /// The function of the C library that reads the processor number from the memory of the thread (rseq(2), glibc 2.35
    /// and later). It is looked up by name, because the headers declare it only with GNU extensions.
    private let query: (@convention(c) @Sendable () -> Int32)?

    /// Makes ready to ask.
    package init() {
        query = dlsym(nil, "sched_getcpu").map {
            unsafeBitCast($0, to: (@convention(c) @Sendable () -> Int32).self)
        }
    }

    /// The processor's number, counted from 0. Where the system does not tell, a number that is always the thread's.
    @usableFromInline package var number: Int {
        if let query { return Int(query()) }
        #if canImport(Glibc)
        let thread = UInt64(pthread_self())
        #else
        let thread = UInt64(UInt(bitPattern: pthread_self()))
        #endif
        // Addresses differ in their upper bits. See KeyTable for the number.
        return Int(truncatingIfNeeded: (thread &* 0x9e37_79b9_7f4a_7c15) &>> 48)
    }
    #endif

    /// Numbers are below this.
    package static var limit: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_CONF)))) }
}
