import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

#if !VITRINE_SANITIZE_THREADS

/// State behind a lock, for small final classes that hold it: `Synchronization.Mutex`.
///
/// The alias exists for the thread sanitizer, which reports false races of a contended `Mutex` on Linux. The kernel hands
/// such a lock to the waiting thread (`FUTEX_LOCK_PI`, futex(2)), inside a library without instrumentation.
/// `Scripts/sanitize` defines `VITRINE_SANITIZE_THREADS`, which replaces the alias by a POSIX mutex.
@usableFromInline
package typealias Locked<Value: ~Copyable> = Mutex<Value>
#else
/// The replacement of `Synchronization.Mutex` in builds for the thread sanitizer: the part of its interface in use
/// here.
///
/// Unchecked: a lock type. The handle and the state have fixed addresses, and the state is accessed under the lock
/// only.
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
    /// ``Mutex/withLock(_:)`` for contended sections of some ten nanoseconds.
    ///
    /// It spins for a fraction of a microsecond before it sleeps, because putting a thread to sleep and waking it takes
    /// longer than that.
    @inlinable
    package borrowing func withLockSpinning<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        var pause = 1
        while pause <= 256 {
            if let result = try withLockIfAvailable(body) { return result }
            // Reading the lock itself would take its cache line from the thread that holds it.
            for _ in 0..<pause { _ = SpinPause.word.load(ordering: .relaxed) }
            pause *= 2
        }
        return try withLock(body)
    }
}

/// A word that is never written: reading it takes a moment and does not disturb other processors.
@usableFromInline
enum SpinPause {
    @usableFromInline static let word = Atomic<Int>(0)
}

/// A lock with a condition variable, which `Synchronization.Mutex` does not have.
///
/// Unchecked: a C-handle type. Both handles have fixed addresses, as POSIX demands, and are made for use from several
/// threads.
package final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// Creates an unlocked monitor.
    package init() {
        // With default attributes these two cannot fail on the supported platforms.
        mutex.initialize(to: pthread_mutex_t())
        condition.initialize(to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Acquires the lock. Blocks.
    package func lock() { pthread_mutex_lock(mutex) }
    /// Releases the lock.
    package func unlock() { pthread_mutex_unlock(mutex) }
    /// Releases the lock until a signal and acquires it again. Wake-ups may be spurious, so callers test their
    /// condition in a loop.
    package func wait() { pthread_cond_wait(condition, mutex) }
    /// Wakes one waiting thread.
    package func signal() { pthread_cond_signal(condition) }
    /// Wakes all waiting threads.
    package func broadcast() { pthread_cond_broadcast(condition) }
}
