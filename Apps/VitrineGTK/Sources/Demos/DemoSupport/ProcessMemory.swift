import Foundation

/// The memory use of this process.
package enum ProcessMemory {
    /// The present memory use, in bytes.
    package static var resident: Int { value("VmRSS:") }
    /// The peak memory use, in bytes.
    package static var peak: Int { value("VmHWM:") }

    private static func value(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return (Int(line.filter(\.isNumber)) ?? 0) << 10
    }
}
