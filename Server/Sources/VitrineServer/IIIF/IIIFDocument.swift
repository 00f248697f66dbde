import Foundation
import HTTPTypes

/// A document of IIIF that a request asks for.
package struct IIIFDocument: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        /// `info.json` of the Image API.
        case information(IIIFParameters.Version)
        /// A manifest of the Presentation API 3: of a folder, a document or an image.
        case manifest
    }

    package var kind: Kind
    /// As in the path: percent-encoded. Empty for the root of local sources.
    package var identifier: Substring
    /// The address of `/iiif` as the client sees it.
    package var base: String

    package init(kind: Kind, identifier: Substring, base: String) {
        (self.kind, self.identifier, self.base) = (kind, identifier, base)
    }

    // MARK: Paths

    /// A path below `/iiif`.
    enum Path: Equatable {
        case document(Kind, Substring)
        /// The address of an image without anything behind it, which leads to its `info.json`.
        case image(Substring)
    }

    /// Whether a target below the mount is an image: `/iiif/VERSION/ID/REGION/SIZE/ROTATION/QUALITY.FORMAT`.
    static func isImage(_ target: Substring) -> Bool {
        let path = target.utf8.prefix { $0 != 0x3F }
        let isVersioned = path.starts(with: "/iiif/2/".utf8) || path.starts(with: "/iiif/3/".utf8)
        return isVersioned && path.count(where: { $0 == 0x2F }) >= 7 && !path.reversed().starts(with: "nosj.ofni/".utf8)
    }

    /// Returns the meaning of a target that is no image; nil for none.
    ///
    /// Proxies may have decoded the slashes of an identifier.
    static func path(_ target: Substring) -> Path? {
        let path = target.prefix { $0 != "?" }.dropFirst("/iiif/".utf8.count)
        guard let slash = path.firstIndex(of: "/") else { return nil }
        let rest = path[path.index(after: slash)...]
        switch path[..<slash] {
        case "2", "3":
            let version: IIIFParameters.Version = path.first == "2" ? .two : .three
            let end = "/info.json"
            if rest.hasSuffix(end), rest.utf8.count > end.utf8.count {
                return .document(.information(version), rest.dropLast(end.count))
            }
            return rest.isEmpty || rest.contains("/") ? nil : .image(rest)
        case "presentation":
            guard rest == "3/manifest" || rest.hasPrefix("3/") && rest.hasSuffix("/manifest") else { return nil }
            return .document(.manifest, rest == "3/manifest" ? "" : rest.dropFirst(2).dropLast("/manifest".count))
        default: return nil
        }
    }

    /// Whether a text is the address of a server, without a slash at the end.
    package static func isPublicURL(_ text: String) -> Bool {
        guard let url = URL(string: text), url.scheme == "http" || url.scheme == "https",
            url.host()?.isEmpty == false, url.query() == nil, url.fragment() == nil
        else { return false }
        return !text.hasSuffix("/")
    }

    /// Whether a text may be the host and port of an address.
    static func isAuthority(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || ".-_:[]".utf8.contains(byte)
            }
    }

    // MARK: Fields

    /// The fields of images: any script may read them.
    static func imageFields(_ version: IIIFParameters.Version, canonicalPath: String?) -> HTTPFields {
        var fields: HTTPFields = [.accessControlAllowOrigin: "*"]
        let profile = "<http://iiif.io/api/image/\(version.rawValue)/level2.json>;rel=\"profile\""
        // Relative to the four segments, so that it holds below every host and mount.
        let canonical = canonicalPath.map { ", <../../../\($0)>;rel=\"canonical\"" } ?? ""
        if let name = HTTPField.Name("Link") { fields.append(HTTPField(name: name, value: profile + canonical)) }
        return fields
    }

    /// The media type of a document, by the client's `Accept`.
    func mediaType(accept: String?) -> String {
        guard accept?.lowercased().contains("application/ld+json") == true else { return "application/json" }
        return "application/ld+json;profile=\"\(context)\""
    }

    /// The version that a client asks for, against the path's.
    static func version(_ own: IIIFParameters.Version, accept: String?) -> IIIFParameters.Version {
        guard let accept else { return own }
        if accept.contains("/api/image/2/context.json") { return .two }
        if accept.contains("/api/image/3/context.json") { return .three }
        return own
    }

    /// The address of the definitions of its terms.
    var context: String {
        switch kind {
        case .information(let version): "http://iiif.io/api/image/\(version.rawValue)/context.json"
        case .manifest: "http://iiif.io/api/presentation/3/context.json"
        }
    }
}
