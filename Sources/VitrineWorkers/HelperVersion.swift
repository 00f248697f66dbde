import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The answer of a helper program to `--version`: a line for the program and for each of its libraries.
package enum HelperVersion {
    /// The version of the command and its helpers.
    package static let number = "0.1.0"

    /// Prints the lines and exits if the first argument is `--version`; otherwise returns at once.
    ///
    /// - Parameters:
    ///   - program: The name of the program.
    ///   - libraries: The names and versions of the libraries it decodes with.
    package static func printIfRequested(_ program: String, _ libraries: @autoclosure () -> [(String, String)]) {
        guard CommandLine.arguments.dropFirst().first == "--version" else { return }
        print("\(program) \(number)")
        for (name, version) in libraries() { print("\(name) \(version)") }
        exit(0)
    }

    /// Returns the libraries in the lines that a helper printed.
    package static func libraries(in text: String) -> [LibraryVersion] {
        text.split(separator: "\n").dropFirst().compactMap { line in
            let words = line.split(separator: " ", maxSplits: 1)
            return words.count == 2 ? LibraryVersion(String(words[0]), version: String(words[1])) : nil
        }
    }
}
