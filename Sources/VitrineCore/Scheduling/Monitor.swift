#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A lock with a condition to wait for, which `Synchronization.Mutex` does not have.
///
/// Unchecked: a C-handle type. The two handles live at fixed addresses, as POSIX demands, and are themselves made for
/// use from several threads.
package final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// A lock nobody holds.
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

    /// Takes the lock. Blocks.
    package func lock() { pthread_mutex_lock(mutex) }
    /// Gives the lock back.
    package func unlock() { pthread_mutex_unlock(mutex) }
    /// Gives the lock up until a signal, or for no reason: callers check what they wait for in a loop.
    package func wait() { pthread_cond_wait(condition, mutex) }
    /// Wakes one who waits.
    package func signal() { pthread_cond_signal(condition) }
    /// Wakes all who wait.
    package func broadcast() { pthread_cond_broadcast(condition) }
}
