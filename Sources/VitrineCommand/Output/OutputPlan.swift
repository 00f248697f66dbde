import ArgumentParser
import Foundation
import VitrineCore
import VitrinePipeline

/// Decides where each result goes before any is made, so that two inputs never share an output and no input is
/// overwritten.
struct OutputPlan {
    enum Target: Sendable {
        /// This file; its extension is fixed.
        case file(String)
        /// This path and the extension of the format that comes out.
        case stem(String)
        case standardOutput
    }

    /// For each input, one target for each size.
    let targets: [[Target]]

    /// - Parameters:
    ///   - items: What is to be shown.
    ///   - sizes: The sizes of each, as they stand in names; a single one does not.
    ///   - output: The argument of `-o`: a file for one result, a directory (made if absent) for several, `-` for
    ///     standard output; nil for the current directory, where results get `-thumbnail` behind their names.
    ///   - isOne: Whether the command line named a single thing. Its pages and sizes go into files that are named after
    ///     `output` if that has the extension of a format.
    init(items: [InputItem], sizes: [String], output: String?, isOne: Bool) throws {
        let endings = sizes.count > 1 ? sizes.map { "-\($0)" } : [""]
        if output == "-" {
            guard isOne, items.count <= 1, sizes.count == 1 else { throw ValidationError("-o - takes one result") }
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
        // Names are told apart without regard to case, for file systems that do not keep it.
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

    /// `path` with `ending` before its extension.
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
            throw ValidationError("\(directory) is a file, and there are several results")
        } catch {
            throw ValidationError("cannot make the directory \(directory)")
        }
    }

    /// Whether both paths lead to one file.
    static func isSameFile(_ a: String, _ b: String) -> Bool {
        func identity(_ path: String) -> String {
            if let path = FilePath.resolved(path) { return path }
            let directory = FilePath.parent(of: path)
            return FilePath.join(FilePath.resolved(directory) ?? FileURI.absolute(directory), FilePath.name(of: path))
        }
        // As bytes: String's == takes canonically equivalent names for one.
        return identity(a).utf8.elementsEqual(identity(b).utf8)
    }
}
