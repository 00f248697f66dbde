import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The files that the inputs of a run are, by device and inode. No output takes their place, under any name.
struct InputFiles: Sendable {
    private struct Identity: Hashable {
        let device: dev_t
        let inode: ino_t
    }

    private var names: [Identity: String] = [:]

    /// - Parameter items: The inputs with their paths; those without a file have none.
    init(_ items: [(name: String, path: String?)]) {
        for item in items {
            if let identity = item.path.flatMap(Self.identity) { names[identity] = names[identity] ?? item.name }
        }
    }

    init(_ items: [InputItem]) { self.init(items.map { ($0.name, $0.path) }) }

    /// Whether a path leads, through any links, to an input that is not the one at `own`.
    func hasOther(at path: String, than own: String?) -> Bool {
        guard let identity = Self.identity(path), names[identity] != nil else { return false }
        return identity != own.flatMap(Self.identity)
    }

    /// The reason why an output cannot be written to a path; nil if no input is there.
    ///
    /// - Parameter own: The path of the input that the output is made from.
    func refusal(of path: String, madeFrom own: String? = nil) -> String? {
        guard let identity = Self.identity(path), let name = names[identity] else { return nil }
        let other = identity == own.flatMap(Self.identity) ? "" : " \(name)"
        return "the output \(path) is the input\(other); name another file with -o"
    }

    private static func identity(_ path: String) -> Identity? {
        var status = stat()
        return stat(path, &status) == 0 ? Identity(device: status.st_dev, inode: status.st_ino) : nil
    }
}

/// Decides on the output of each result before any is made. Two inputs never share an output, and no output is an input.
struct OutputPlan {
    enum Target: Sendable {
        /// This file; its extension is fixed.
        ///
        /// - Parameter isNamed: Whether the command line has this very name, so that a file there is replaced.
        case file(String, isNamed: Bool)
        /// This path, with the extension of the resulting format.
        case stem(String)
        case standardOutput
    }

    /// For each input, one target for each size.
    let targets: [[Target]]

    /// - Parameters:
    ///   - items: The inputs.
    ///   - sizes: The sizes of each input. Several sizes become part of the names.
    ///   - extensions: The extensions that results can get.
    ///   - isFormatGiven: Whether the extension of `output` does not decide on the format.
    ///   - output: The argument of `-o`: a file for one result, a directory for several, `-` for standard output. nil
    ///     for the current directory, where names end in `-thumbnail`.
    ///   - isOne: Whether the command line has a single input. If `output` has the extension of a format, the names of
    ///     its pages and sizes begin with `output`.
    /// - Throws: `ValidationError`, or ``InputFailure`` if the directory cannot be made.
    init(
        items: [InputItem], sizes: [String], extensions: [String], isFormatGiven: Bool, output: String?, isOne: Bool
    ) throws {
        let endings = sizes.count > 1 ? sizes.map { "-\($0)" } : [""]
        if output == "-" {
            guard isOne, items.count <= 1, sizes.count == 1 else {
                throw ValidationError("-o - takes a single result; name a directory for several")
            }
            targets = items.map { _ in [.standardOutput] }
            return
        }
        let isSingle = items.count <= 1 && sizes.count == 1
        let namesFile = output.map { !Directory.isDirectory($0) && !$0.hasSuffix("/") } ?? false
        if let output, namesFile, isOne, isSingle || FormatArgument(path: output) != nil {
            if !isFormatGiven { try OutputArgument.checkFormat(of: output) }
            targets = items.map { item in
                endings.map { .file(Self.name(output, with: Self.pageEnding(item) + $0), isNamed: isSingle) }
            }
            return
        }
        if let output, namesFile, OutputArgument.isImageName(output) {
            throw ValidationError("\(output) is the name of one file; -o needs a directory for several results")
        }
        let directory = output ?? "."
        if output != nil { try Self.makeDirectory(directory) }
        let inputs = InputFiles(items)
        func path(_ item: InputItem, _ name: String) -> String {
            let base = name + (output == nil ? "-thumbnail" : "") + Self.pageEnding(item)
            let folder = item.folder.isEmpty ? directory : FilePath.join(directory, item.folder)
            return folder == "." ? base : FilePath.join(folder, base)
        }
        // Names that differ only in case are equal, for file systems that ignore case.
        var sharers: [String: Set<String>] = [:]
        for item in items { sharers[path(item, item.stem).lowercased(), default: []].insert(item.fileName.lowercased()) }
        var used: Set<String> = []
        targets = items.map { item in
            var first = path(item, item.stem)
            let meetsInput = endings.contains { ending in
                extensions.contains { inputs.hasOther(at: "\(first)\(ending).\($0)", than: item.path) }
            }
            // The name of its input tells whose thumbnail it is, whatever else is in the run.
            if meetsInput || sharers[first.lowercased(), default: []].count > 1 { first = path(item, item.fileName) }
            var candidate = first
            var n = 2
            while endings.contains(where: { used.contains((candidate + $0).lowercased()) }) {
                candidate = "\(first)-\(n)"
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
