#if !VITRINE_SANITIZE_THREADS
import Synchronization

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
}
#endif
