#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Finds the helper executables that do work in processes of their own.
package enum HelperProgram {
    /// Returns the path of a helper: the value of its ``variable(for:)``, a file beside the running program, or one in
    /// `PATH`.
    ///
    /// - Returns: nil if there is none that this process may execute.
    package static func path(of program: String) -> String? {
        candidates(program).first(where: isExecutable)
    }

    /// The environment variable with the path of a helper: `VITRINE_WORKER` for `vitrine-worker`.
    package static func variable(for program: String) -> String {
        String(program.uppercased().map { $0 == "-" ? "_" : $0 })
    }

    /// Returns the advice for a missing helper, as a part of a sentence: the Debian package, the product, the variable.
    package static func advice(for program: String) -> String {
        "install the Debian package \(debianPackage(of: program)), or add .product(name: \"\(program)\", "
            + "package: \"vitrine\") to the dependencies of the target, or set \(variable(for: program)) to its path"
    }

    /// The Debian package that contains a helper. Those that link no library under the GPL are in the main one.
    private static func debianPackage(of program: String) -> String {
        ["vitrine-worker", "vitrine-agent"].contains(program) ? "vitrine" : program
    }

    private static func candidates(_ program: String) -> [String] {
        if let named = getenv(variable(for: program)) {
            let path = PathText.text(cString: named)
            if !path.isEmpty { return [path] }
        }
        var paths: [String] = []
        if let running, let slash = running.lastIndex(of: "/") { paths.append(running[...slash] + program) }
        return paths + inSearchPath(program)
    }

    /// Returns the possible paths of a program in `PATH`.
    package static func inSearchPath(_ program: String) -> [String] {
        guard let search = getenv("PATH") else { return [] }
        // Relative entries would depend on where the program was started.
        return PathText.text(cString: search).split(separator: ":").filter { $0.hasPrefix("/") }
            .map { "\($0)/\(program)" }
    }

    /// Whether a file exists that this process may execute.
    package static func isExecutable(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }

    /// The path of the running program, or nil if the system does not report it.
    package static var running: String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let count = readlink("/proc/self/exe", base, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            return PathText.text(of: buffer[..<count].map { UInt8(bitPattern: $0) })
        }
    }
}
