import ArgumentParser
import Foundation
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// One thing to fetch, and where it goes.
struct FetchItem: Sendable {
    /// The word of the command line.
    let name: String
    let url: URL
    /// Where it goes; nil for nowhere.
    let output: Target?

    enum Target: Sendable {
        case file(String)
        case standardOutput
    }
}

/// Decides where each result goes before any is loaded, so that two never share a file.
enum FetchPlan {
    /// - Parameters:
    ///   - words: Addresses.
    ///   - output: A file for one result, `-` for standard output, a directory for several, made if absent; nil for no
    ///     files.
    static func items(_ words: [String], output: String?) throws -> [Result<FetchItem, InputFailure>] {
        if output == "-", words.count > 1 { throw ValidationError("-o - takes one result") }
        let isDirectory = output.map { Directory.isDirectory($0) || $0.hasSuffix("/") || words.count > 1 } ?? false
        if isDirectory, let output {
            do throws(FileError) { try Directory.create(output, mode: 0o777) } catch {
                throw ValidationError("\(output) is no directory, and there are several results")
            }
        }
        var used: Set<String> = []
        return words.map { word in
            guard let url = URL(string: word), url.scheme != nil else {
                return .failure(InputFailure(name: word, reason: "it is no address: http:// is missing"))
            }
            guard isDirectory, let output else {
                let target = output.map { $0 == "-" ? FetchItem.Target.standardOutput : .file($0) }
                return .success(FetchItem(name: word, url: url, output: target))
            }
            let name = unused(fileName(for: url), &used)
            return .success(FetchItem(name: word, url: url, output: .file(FilePath.join(output, name))))
        }
    }

    /// The name of a file for what an address stands for: the last part of its path, or its host, made harmless as
    /// names of downloads are. One that would be hidden gets a `_`.
    static func fileName(for url: URL) -> String {
        let part = url.path(percentEncoded: false).split(separator: "/").last.map(String.init)
        let shown = part.map { $0.hasPrefix(".") ? "_" + $0 : $0 }
        return shown.flatMap(DownloadName.safe) ?? url.host().flatMap(DownloadName.safe) ?? DownloadName.unnamed
    }

    /// The name, or one like it that is not used. Compared without regard to case, for file systems that do not keep
    /// it.
    private static func unused(_ name: String, _ used: inout Set<String>) -> String {
        let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 } ?? name.endIndex
        var candidate = name, number = 2
        while !used.insert(candidate.lowercased()).inserted {
            candidate = "\(name[..<dot])-\(number)\(name[dot...])"
            number += 1
        }
        return candidate
    }
}
