#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

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
    /// The C library's, which reads what the kernel keeps in the thread's memory (rseq(2), glibc 2.35 and later). It is
    /// looked up by name as the headers declare it to C with GNU extensions only.
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
