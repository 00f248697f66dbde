import ArgumentParser
import VitrineCore
import VitrineDownloads
import VitrineNetwork
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An address and its output.
struct FetchItem: Sendable {
    /// The word of the command line.
    let name: String
    let url: URL
    /// nil for the cache only.
    let output: Target?

    enum Target: Sendable {
        case file(String)
        case standardOutput
    }
}

/// Decides on the output of each address before any is loaded. Two addresses never share a file.
enum FetchPlan {
    /// - Parameters:
    ///   - words: Addresses.
    ///   - output: A file for one result, `-` for standard output, a directory for several; nil for no files.
    /// - Throws: `ValidationError`, or ``InputFailure`` if the directory cannot be made.
    static func items(_ words: [String], output: String?) throws -> [Result<FetchItem, InputFailure>] {
        if output == "-", words.count > 1 {
            throw ValidationError("-o - takes a single address; name a directory for several")
        }
        let isDirectory = output.map { Directory.isDirectory($0) || $0.hasSuffix("/") || words.count > 1 } ?? false
        if isDirectory, let output {
            do throws(FileError) {
                try Directory.create(output, mode: 0o777)
            } catch .alreadyExists {
                throw ValidationError("\(output) is a file; -o needs a directory for several addresses")
            } catch {
                throw InputFailure(name: output, reason: "cannot make the directory: \(error.cause)")
            }
        }
        var used: Set<String> = []
        let inputs = InputFiles(words.map { ($0, FileURI.path(of: $0)) })
        return words.map { word in
            guard let url = URL(string: word), url.scheme != nil else {
                let reason = "it is not an address; addresses begin with https:// or http://"
                return .failure(InputFailure(name: word, reason: reason))
            }
            guard let scheme = url.scheme?.lowercased(), ["http", "https", "file", "data"].contains(scheme) else {
                let reason = "cannot load addresses of this scheme; use http, https, file or data"
                return .failure(InputFailure(name: word, reason: reason))
            }
            guard isDirectory, let output else {
                let target = output.map { $0 == "-" ? FetchItem.Target.standardOutput : .file($0) }
                if let output, output != "-", let reason = inputs.refusal(of: output) {
                    return .failure(InputFailure(name: word, reason: reason))
                }
                return .success(FetchItem(name: word, url: url, output: target))
            }
            let name = unused(fileName(for: url), in: output, &used)
            return .success(FetchItem(name: word, url: url, output: .file(FilePath.join(output, name))))
        }
    }

    /// Returns the name of the file for an address: the last part of its path, or its host, made safe like the names of
    /// downloads. A name that begins with a dot gets a `_` before it.
    static func fileName(for url: URL) -> String {
        let shown = DownloadName.lastComponent(of: url).map { $0.hasPrefix(".") ? "_" + $0 : $0 }
        return shown.flatMap(DownloadName.safe) ?? url.host().flatMap(DownloadName.safe) ?? DownloadName.unnamed
    }

    /// Returns the name, with a number if the run or an existing file uses it already, as downloads get one. Names that
    /// differ only in case are equal, for file systems that ignore case.
    private static func unused(_ name: String, in directory: String, _ used: inout Set<String>) -> String {
        let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 } ?? name.endIndex
        var candidate = name, number = 2
        while FilePath.exists(FilePath.join(directory, candidate)) || !used.insert(candidate.lowercased()).inserted {
            candidate = "\(name[..<dot])-\(number)\(name[dot...])"
            number += 1
        }
        return candidate
    }
}

/// The result of one address, as a line of text or JSON.
struct FetchReport: Sendable, Encodable {
    var url: String
    var output: String?
    var source: FetchOrigin?
    var status: Int?
    var type: String?
    var bytes: Int?
    /// How many of the bytes came from an interrupted fetch before.
    var resumed: Int?
    var milliseconds = 0.0
    var error: String?

    init(url: String) { self.url = url }

    init(_ failure: InputFailure) {
        url = failure.name
        error = failure.reason
    }

    private enum CodingKeys: String, CodingKey {
        case url, output, source, status, type, bytes, resumed, milliseconds, error
    }

    /// Every key is present. Values that do not apply are null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(url, forKey: .url)
        try container.encode(output, forKey: .output)
        try container.encode(source, forKey: .source)
        try container.encode(status, forKey: .status)
        try container.encode(type, forKey: .type)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(resumed, forKey: .resumed)
        try container.encode((milliseconds * 1000).rounded() / 1000, forKey: .milliseconds)
        try container.encode(error, forKey: .error)
    }

    /// Prints it to standard output, unless the bytes go there.
    func print(asJSON: Bool, toStandardError: Bool) {
        let emit = toStandardError ? Diagnostics.write : Output.row
        if asJSON { return emit(JSONLine.text(self)) }
        if let error { return Diagnostics.write("\(url): \(error)") }
        var details = [type, bytes.map { ByteCount($0).formatted() }].compactMap(\.self)
        if let source { details.append(source.text) }
        if let resumed, resumed > 0 { details.append("\(ByteCount(resumed).formatted()) of it resumed") }
        let target = output.map { "  →  \($0)" } ?? ""
        emit("\(url)\(target)  \(details.joined(separator: "  "))  " + milliseconds.formatted("%.1f ms"))
    }
}

/// The origin of a body.
enum FetchOrigin: String, Sendable, Encodable {
    /// From the cache, without a request.
    case cache
    /// From the cache, after revalidation.
    case revalidated
    /// From the cache although it has expired, because no server was asked or none answered.
    case stale
    /// From the network.
    case network

    /// The words for people.
    var text: String {
        switch self {
        case .cache: "from the cache"
        case .revalidated: "from the cache, revalidated"
        case .stale: "from the cache, expired"
        case .network: "from the network"
        }
    }
}
