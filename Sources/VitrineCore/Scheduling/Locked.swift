import Synchronization

#if !VITRINE_SANITIZE_THREADS

/// State behind a lock, for the small final classes that hold it: `Synchronization.Mutex`.
///
/// It has a name of its own because the thread sanitizer cannot follow the standard library's lock on Linux: a thread
/// that has to wait is given the lock by the kernel (`FUTEX_LOCK_PI`, futex(2)), inside a library without
/// instrumentation, so that every contended access to the state behind it is taken for a race. `Scripts/sanitize`
/// builds with `VITRINE_SANITIZE_THREADS`, whereupon this is a POSIX mutex, which the sanitizer knows.
@usableFromInline
package typealias Locked<Value: ~Copyable> = Mutex<Value>
#else
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The stand-in for `Synchronization.Mutex` in builds for the thread sanitizer, with the part of its interface that is
/// used here.
///
/// Unchecked: a lock type. The handle and the state live at fixed addresses, the state is touched under the lock only.
@usableFromInline
package struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    @usableFromInline
    package init(_ initialValue: consuming sending Value) {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        value.initialize(to: initialValue)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @usableFromInline
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }

    @usableFromInline
    package borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        guard pthread_mutex_trylock(mutex) == 0 else { return nil }
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
#endif

extension Locked where Value: ~Copyable {
    /// ``Mutex/withLock(_:)`` for sections of some ten nanoseconds that several threads are at all the time: tries for
    /// a fraction of a microsecond before it sleeps, as putting a thread to sleep and waking it takes longer than that.
    @inlinable
    package borrowing func withLockSpinning<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        var pause = 1
        while pause <= 256 {
            if let result = try withLockIfAvailable(body) { return result }
            // Looking at the lock itself would take its memory from who holds it.
            for _ in 0..<pause { _ = SpinPause.word.load(ordering: .relaxed) }
            pause *= 2
        }
        return try withLock(body)
    }
}

/// A word that nobody writes: reading it takes a moment and disturbs no other processor.
@usableFromInline
enum SpinPause {
    @usableFromInline static let word = Atomic<Int>(0)
}
