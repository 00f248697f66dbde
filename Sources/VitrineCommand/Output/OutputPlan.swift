import ArgumentParser
import Foundation

/// Decides where each result goes before any is made, so that two inputs never share an output and no input is
/// overwritten.
struct OutputPlan {
    enum Target {
        /// This file; its extension is fixed.
        case file(String)
        /// This path and the extension of the format that comes out.
        case stem(String)
        case standardOutput
    }

    let targets: [Target]

    /// - Parameters:
    ///   - inputs: Paths, `-` for standard input.
    ///   - output: The argument of `-o`: a file for one input, a directory (made if absent) for several, `-` for
    ///     standard output; nil for the current directory, where results get `-thumbnail` behind their names.
    init(inputs: [String], output: String?) throws {
        if output == "-" {
            guard inputs.count == 1 else { throw ValidationError("-o - takes one input") }
            targets = [.standardOutput]
            return
        }
        if let output, inputs.count == 1, !Self.isDirectory(output), !output.hasSuffix("/") {
            targets = [.file(output)]
            return
        }
        let directory = output ?? "."
        if output != nil {
            guard !FileManager.default.fileExists(atPath: directory) || Self.isDirectory(directory) else {
                throw ValidationError("\(directory) is a file, and there are several inputs")
            }
            do {
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            } catch {
                throw ValidationError("cannot make the directory \(directory)")
            }
        }
        // Stems are told apart without regard to case, for file systems that do not keep it.
        var used: Set<String> = []
        targets = inputs.map { input in
            let name = input == "-" ? "stdin" : URL(filePath: input).lastPathComponent
            let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 }
            let base = (dot.map { String(name[..<$0]) } ?? name) + (output == nil ? "-thumbnail" : "")
            var candidate = base
            var n = 2
            while !used.insert(candidate.lowercased()).inserted {
                candidate = "\(base)-\(n)"
                n += 1
            }
            return .stem(
                directory == "." ? candidate : URL(filePath: directory).appending(path: candidate).relativePath)
        }
    }

    static func isDirectory(_ path: String) -> Bool {
        var directory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &directory) && directory.boolValue
    }

    /// Whether both paths lead to one file.
    static func isSameFile(_ a: String, _ b: String) -> Bool {
        func identity(_ path: String) -> String {
            URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL.path
        }
        return identity(a) == identity(b)
    }
}
