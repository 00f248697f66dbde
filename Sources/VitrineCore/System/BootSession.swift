#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The time from one start of the machine to the next: within it, what programs wrote to files is there, whether or not
/// they were synchronized and however the programs ended.
package enum BootSession {
    /// A text no other session has; nil if the system does not tell.
    ///
    /// Linux: random(4). Apple: the kernel's `kern.bootsessionuuid`.
    package static let identifier: String? = {
        #if canImport(Darwin)
        var text = [UInt8](repeating: 0, count: 64)
        var count = text.count
        guard sysctlbyname("kern.bootsessionuuid", &text, &count, nil, 0) == 0 else { return nil }
        let bytes = text.prefix { $0 != 0 }
        #else
        guard let text = try? FileContents.read("/proc/sys/kernel/random/boot_id", limit: 64) else { return nil }
        let bytes = text.prefix { $0 > 0x20 }
        #endif
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }()
}
