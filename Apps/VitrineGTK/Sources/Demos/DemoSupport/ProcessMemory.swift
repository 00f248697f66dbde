import Foundation

/// The memory of this program that is in use.
package enum ProcessMemory {
    /// Now, in bytes.
    package static var resident: Int { value("VmRSS:") }
    /// The most there ever was, in bytes.
    package static var peak: Int { value("VmHWM:") }

    private static func value(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return (Int(line.filter(\.isNumber)) ?? 0) << 10
    }
}
