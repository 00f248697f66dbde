import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Loads images, documents and videos from web addresses.
enum RemoteInput {
    /// Connections that all inputs of the command share.
    private static let transfers = NetworkLoader()
    /// The same for public addresses only.
    private static let publicTransfers: NetworkLoader = {
        var configuration = NetworkLoader.Configuration()
        configuration.policy = .publicOnly
        return NetworkLoader(configuration)
    }()

    /// Returns the bytes at an address, at most as many as an input may have.
    ///
    /// - Throws: ``InputFailure`` for a web page, which only a browser can draw.
    static func load(_ address: String, publicOnly: Bool) async throws -> [UInt8] {
        guard let url = URL(string: address) else {
            throw InputFailure(name: address, reason: "it is not a valid address")
        }
        var request = HTTPRequest(url: url)
        request.maximumBodySize = ByteCount(CommandLimits.current.maximumInputBytes)
        let response = try await (publicOnly ? publicTransfers : transfers).load(request)
        var bytes: [UInt8] = []
        if let count = response.head.contentLength { bytes.reserveCapacity(min(count, 1 << 24)) }
        for try await chunk in response.body { bytes.append(contentsOf: chunk) }
        if isWebPage(bytes, contentType: response.head.contentType, name: address) {
            throw InputFailure(name: address, reason: "it is a web page; --web-page draws it with a browser")
        }
        return bytes
    }

    /// Whether bytes are HTML. Servers also name images so.
    private static func isWebPage(_ bytes: [UInt8], contentType: String?, name: String) -> Bool {
        let type = contentType?.prefix { $0 != ";" }.lowercased().trimmingPrefix { $0 == " " } ?? ""
        guard type.hasPrefix("text/html") || type.hasPrefix("application/xhtml+xml") else { return false }
        return ((try? FileKind(of: .bytes(bytes, name: name))) ?? nil) == nil
    }

    /// Returns the name of the file at an address without its extension, if it has the extension of an image, a PDF or
    /// a video; nil for other addresses.
    static func stem(of address: String) -> String? {
        guard let url = URL(string: address), url.host() != nil else { return nil }
        let name = FetchPlan.fileName(for: url)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return nil }
        let ending = name[name.index(after: dot)...].lowercased()
        let isKnown = ending == "pdf" || Codecs.standard.formats.contains { $0.fileExtensions.contains(ending) }
            || MediaFormat.allCases.contains { $0.fileExtensions.contains(ending) }
        return isKnown ? String(name[..<dot]) : nil
    }
}
