#if SystemCodecs
import CVitrineAVIF
import CVitrineJPEG
import CVitrinePNG
import CVitrineWebP
#endif
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A library of the system, and its version.
package struct LibraryVersion: Sendable, Hashable, Codable {
    package let name: String
    /// nil if the library is missing.
    package let version: String?
    /// The reason why the library cannot be used; nil if it can.
    package var problem: String?

    package init(_ name: String, version: String?, problem: String? = nil) {
        self.name = name
        self.version = version
        self.problem = problem
    }

    /// The libraries that decode and encode in this process. Loads those that are loaded when first needed.
    package static var codecs: [LibraryVersion] {
        #if SystemCodecs
        let webp = cwebp_version()
        let avif = cavif_missing().map { String(cString: $0) }
        return [
            LibraryVersion("libjpeg-turbo", version: String(cString: cjpeg_version())),
            LibraryVersion("libpng", version: String(cString: cpng_version())),
            LibraryVersion("libwebp", version: "\(webp >> 16).\(webp >> 8 & 255).\(webp & 255)"),
            LibraryVersion("libavif", version: avif == nil ? String(cString: cavif_version()) : nil, problem: avif),
        ]
        #else
        return []
        #endif
    }
}

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
