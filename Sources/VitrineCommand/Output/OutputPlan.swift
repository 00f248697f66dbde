import ArgumentParser
import VitrineCore
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides on the output of each result before any is made. Two inputs never share an output, and no input is
/// overwritten.
struct OutputPlan {
    enum Target: Sendable {
        /// This file; its extension is fixed.
        case file(String)
        /// This path, with the extension of the resulting format.
        case stem(String)
        case standardOutput
    }

    /// For each input, one target for each size.
    let targets: [[Target]]

    /// - Parameters:
    ///   - items: The inputs.
    ///   - sizes: The sizes of each input. Several sizes become part of the names.
    ///   - output: The argument of `-o`: a file for one result, a directory for several, `-` for standard output. nil
    ///     for the current directory, where names end in `-thumbnail`.
    ///   - isOne: Whether the command line has a single input. If `output` has the extension of a format, the names of
    ///     its pages and sizes begin with `output`.
    /// - Throws: `ValidationError`, or ``InputFailure`` if the directory cannot be made.
    init(items: [InputItem], sizes: [String], output: String?, isOne: Bool) throws {
        let endings = sizes.count > 1 ? sizes.map { "-\($0)" } : [""]
        if output == "-" {
            guard isOne, items.count <= 1, sizes.count == 1 else {
                throw ValidationError("-o - takes a single result; name a directory for several")
            }
            targets = items.map { _ in [.standardOutput] }
            return
        }
        let isSingle = items.count <= 1 && sizes.count == 1
        if let output, isOne, !Directory.isDirectory(output), !output.hasSuffix("/"),
            isSingle || FormatArgument(path: output) != nil
        {
            targets = items.map { item in
                endings.map { .file(Self.name(output, with: Self.pageEnding(item) + $0)) }
            }
            return
        }
        let directory = output ?? "."
        if output != nil { try Self.makeDirectory(directory) }
        // Names that differ only in case are equal, for file systems that ignore case.
        var used: Set<String> = []
        targets = items.map { item in
            let base = item.stem + (output == nil ? "-thumbnail" : "") + Self.pageEnding(item)
            let folder = item.folder.isEmpty ? directory : FilePath.join(directory, item.folder)
            let path = folder == "." ? base : FilePath.join(folder, base)
            var candidate = path
            var n = 2
            while endings.contains(where: { used.contains((candidate + $0).lowercased()) }) {
                candidate = "\(path)-\(n)"
                n += 1
            }
            return endings.map { ending in
                used.insert((candidate + ending).lowercased())
                return .stem(candidate + ending)
            }
        }
    }

    private static func pageEnding(_ item: InputItem) -> String { item.page.map { "-page-\($0)" } ?? "" }

    /// Returns `path` with `ending` before its extension.
    private static func name(_ path: String, with ending: String) -> String {
        let file = path.split(separator: "/").last ?? ""
        guard let dot = file.lastIndex(of: "."), dot != file.startIndex else { return path + ending }
        let count = file.distance(from: dot, to: file.endIndex)
        return path.dropLast(count) + ending + path.suffix(count)
    }

    private static func makeDirectory(_ directory: String) throws {
        do throws(FileError) {
            try Directory.create(directory, mode: 0o777)
        } catch .alreadyExists {
            throw ValidationError("\(directory) is a file; -o needs a directory for several results")
        } catch {
            throw InputFailure(name: directory, reason: "cannot make the directory: \(error.cause)")
        }
    }

    /// Whether both paths refer to one file.
    static func isSameFile(_ a: String, _ b: String) -> Bool {
        func identity(_ path: String) -> String {
            if let path = FilePath.resolved(path) { return path }
            let directory = FilePath.parent(of: path)
            return FilePath.join(FilePath.resolved(directory) ?? FileURI.absolute(directory), FilePath.name(of: path))
        }
        // As bytes, because == of String ignores the Unicode normalization of names.
        return identity(a).utf8.elementsEqual(identity(b).utf8)
    }
}
