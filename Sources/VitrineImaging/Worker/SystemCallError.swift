#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A system call that failed while a worker was set up.
package struct SystemCallError: Error, CustomStringConvertible {
    /// Its name.
    package let call: String
    /// Its error number.
    package let code: Int32

    /// For example "mmap: Cannot allocate memory".
    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}
