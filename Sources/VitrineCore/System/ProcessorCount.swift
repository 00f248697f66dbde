#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// How many processors there are to use.
package enum ProcessorCount {
    /// Processors that are switched on, at least 1.
    package static var active: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}
