import Foundation

/// Records a child's changes below a directory by strace(1).
package enum FileTrace {
    package static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") && canTrace

    private static let calls = [
        "open", "openat", "creat", "write", "pwrite64", "ftruncate", "rename", "renameat", "renameat2", "link",
        "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "fsync", "fdatasync",
    ]

    /// Containers often forbid tracing.
    private static let canTrace: Bool = {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/strace")
        process.arguments = ["-o", "/dev/null", "true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// The words before a command that record it in `log`: all strings in hexadecimal, descriptors with their paths.
    package static func command(log: String) -> [String] {
        ["strace", "-f", "-y", "-xx", "-s", "300000", "-o", log, "-e", "trace=" + calls.joined(separator: ",")]
    }

    /// The changes below `directory`, in order. SQLite's shared memory is not on the disk and left out.
    package static func operations(log: String, below directory: String) throws -> [FileOperation] {
        var operations: [FileOperation] = [], unfinished: [String: Substring] = [:]
        let text = String(decoding: try Data(contentsOf: URL(filePath: log)), as: UTF8.self)
        for line in text.split(separator: "\n") {
            guard let space = line.firstIndex(of: " ") else { continue }
            let thread = String(line[..<space])
            var call = line[space...].drop { $0 == " " }
            if call.hasSuffix("<unfinished ...>") {
                unfinished[thread] = call.dropLast(16)
                continue
            }
            if call.hasPrefix("<... "), let end = call.range(of: "resumed>"), let start = unfinished[thread] {
                call = Substring(start + call[end.upperBound...])
                unfinished[thread] = nil
            }
            guard let parsed = TracedCall(call) else { continue }
            if let operation = parsed.operation(below: directory) { operations.append(operation) }
        }
        return operations
    }
}

/// One line of strace's output: `name(arguments) = result`.
private struct TracedCall {
    let name: Substring
    /// Decoded: what stood in quotes.
    let strings: [[UInt8]]
    /// What stood in angle brackets behind a descriptor.
    let paths: [String]
    let numbers: [Int]
    let flags: Substring

    init?(_ line: Substring) {
        // Only what succeeded has changed anything.
        guard let open = line.utf8.firstIndex(of: 0x28), let equals = line.range(of: " = ", options: .backwards),
            !line[equals.upperBound...].hasPrefix("-")
        else { return nil }
        name = line[..<open]
        var strings: [[UInt8]] = [], paths: [String] = [], numbers: [Int] = [], rest: [UInt8] = []
        var bytes = line[line.utf8.index(after: open)..<equals.lowerBound].utf8[...]
        while let first = bytes.popFirst() {
            switch first {
            case 0x22: strings.append(Self.takeHexadecimal(&bytes, until: 0x22))
            case 0x3C: paths.append(String(decoding: Self.takeHexadecimal(&bytes, until: 0x3E), as: UTF8.self))
            default: rest.append(first)
            }
        }
        let words = String(decoding: rest, as: UTF8.self).split { $0 == "," || $0 == ")" || $0 == " " }
        for word in words { if let number = Int(word) { numbers.append(number) } }
        self.strings = strings
        self.paths = paths
        self.numbers = numbers
        flags = Substring(words.joined(separator: " "))
    }

    /// Bytes written as `\x41`, up to a delimiter.
    private static func takeHexadecimal(_ text: inout Substring.UTF8View.SubSequence, until end: UInt8) -> [UInt8] {
        var bytes: [UInt8] = []
        while let first = text.popFirst(), first != end {
            guard first == 0x5C, text.popFirst() == 0x78, let high = text.popFirst(), let low = text.popFirst() else {
                bytes.append(first)
                continue
            }
            bytes.append(digit(high) << 4 | digit(low))
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8 { byte < 0x3A ? byte - 0x30 : (byte | 0x20) - 0x57 }

    /// A path argument, which may be relative to the descriptor before it.
    private func path(_ index: Int) -> String {
        guard index < strings.count else { return "" }
        let path = String(decoding: strings[index], as: UTF8.self)
        guard !path.hasPrefix("/"), let base = index < paths.count ? paths[index] : paths.first else { return path }
        return base + "/" + path
    }

    func operation(below directory: String) -> FileOperation? {
        let target: String
        switch name {
        case "write", "pwrite64", "ftruncate", "fsync", "fdatasync": target = paths.first ?? ""
        case "symlink", "symlinkat": target = path(1)
        default: target = path(0)
        }
        guard target.hasPrefix(directory), !target.hasSuffix("-shm") else { return nil }
        switch name {
        case "open", "openat", "creat":
            if flags.contains("O_TRUNC") { return .truncate(target, size: 0) }
            return flags.contains("O_CREAT") || name == "creat" ? .create(target) : nil
        case "mkdir", "mkdirat": return .makeDirectory(target)
        case "rename", "renameat", "renameat2": return .rename(from: target, to: path(1))
        case "link", "linkat": return .link(from: target, to: path(1))
        case "symlink", "symlinkat":
            return .symbolicLink(target, target: String(decoding: strings.first ?? [], as: UTF8.self))
        case "unlink", "unlinkat", "rmdir": return .unlink(target)
        case "write": return .write(target, offset: nil, bytes: strings.first ?? [])
        case "pwrite64": return .write(target, offset: numbers.last, bytes: strings.first ?? [])
        case "ftruncate": return .truncate(target, size: numbers.last ?? 0)
        default: return .synchronize(target)
        }
    }
}
