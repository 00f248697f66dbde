import Foundation
import VitrineImaging

/// The URLs of the IIIF Image API: `/VERSION/ID/REGION/SIZE/ROTATION/QUALITY.FORMAT`.
///
/// An identifier is a percent-encoded path below the root of local sources, or below the base URL without one. The
/// whole address of a source is an identifier if the configuration names the allowed ones. `;2` behind an identifier is
/// the second page of a document.
package struct IIIFGrammar: Sendable {
    /// The longest side of a result.
    package var longestSide: Int
    /// Whether paths are those of local files.
    package var hasLocalRoot: Bool
    /// Whether the base URL completes paths.
    package var hasBaseURL: Bool
    /// Whether addresses are identifiers.
    package var allowsAddresses: Bool
    /// The options of a URL that asks for nothing: ``NativeGrammar/base()``. Sizes and places are always the URL's.
    private var defaults = ProcessingOptions()
    private var rules = ProcessingRules()

    package init(
        longestSide: Int = 8_192, hasLocalRoot: Bool = true, hasBaseURL: Bool = false, allowsAddresses: Bool = false
    ) {
        (self.longestSide, self.hasLocalRoot) = (longestSide, hasLocalRoot)
        (self.hasBaseURL, self.allowsAddresses) = (hasBaseURL, allowsAddresses)
    }

    package init(
        _ configuration: ServerConfiguration, defaults: ProcessingOptions = ProcessingOptions(),
        rules: ProcessingRules = ProcessingRules()
    ) {
        self.init(
            longestSide: configuration.maximumResultDimension, hasLocalRoot: !configuration.localRoot.isEmpty,
            hasBaseURL: !configuration.baseURL.isEmpty, allowsAddresses: !configuration.allowedSources.isEmpty)
        (self.defaults, self.rules) = (defaults, rules)
    }

    /// Parses the path of an image behind `/iiif`.
    ///
    /// - Throws: 400 for parameters that are not valid, 404 for an identifier that cannot be a source.
    package func parse(_ path: Substring) throws(RequestError) -> ImageURL {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard segments.count >= 6, let first = segments.first,
            let version = Int(first).flatMap(IIIFParameters.Version.init)
        else { throw RequestError(404, code: "not-found", reason: "There is no image at this path.") }
        // Proxies may have decoded the slashes of an identifier.
        let identifier = path[first.endIndex..<segments[segments.endIndex - 4].startIndex].dropFirst().dropLast()
        let source = try source(of: identifier)
        var texts: [Substring] = []
        for segment in segments.suffix(4) {
            guard let text = String(segment).removingPercentEncoding else {
                throw RequestError(400, code: "malformed-path", reason: "The path is not percent-encoded correctly.")
            }
            texts.append(Substring(text))
        }
        let parameters = try IIIFParameters(
            version: version, region: texts[0], size: texts[1], rotation: texts[2], file: texts[3],
            longestSide: longestSide)
        var options = ProcessingOptions(parameters, defaults)
        // The page is a part of the identifier, and no option.
        options.page = source.page
        var whole = IIIFParameters()
        whole.version = version
        var nothing = ProcessingOptions(whole, defaults)
        nothing.page = source.page
        let url = ImageURL(
            grammar: .iiif, options: options, source: source.address,
            request: .options(options.differences(from: nothing)))
        try rules.check(url)
        return url
    }

    /// Returns the URL of an identifier's source, for its header.
    func url(of identifier: Substring, page: Int? = nil) throws(RequestError) -> ImageURL {
        let source = try source(of: identifier)
        var options = ProcessingOptions()
        options.page = page ?? source.page
        return ImageURL(grammar: .iiif, options: options, source: source.address)
    }

    private func source(of identifier: Substring) throws(RequestError) -> (address: String, page: Int) {
        var (name, page) = (identifier, 1)
        if let mark = identifier.lastIndex(of: ";") {
            let digits = identifier[identifier.index(after: mark)...]
            if (1...6).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int(digits), number > 0
            {
                (name, page) = (identifier[..<mark], number)
            }
        }
        let missing = RequestError(404, code: "not-found", reason: "There is no image of this identifier.")
        guard let text = String(name).removingPercentEncoding, !text.isEmpty,
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw missing }
        if text.contains("://") {
            guard allowsAddresses else { throw missing }
            return (text, page)
        }
        let names = text.split(separator: "/", omittingEmptySubsequences: true)
        guard !names.isEmpty, !names.contains("."), !names.contains("..") else { throw missing }
        let path = names.map { Self.encoded($0) }.joined(separator: "/")
        if hasLocalRoot { return ("local:///" + path, page) }
        guard hasBaseURL else { throw missing }
        return (path, page)
    }

    /// A name in a path, where only letters, digits and `-._~` stand for themselves.
    static func encoded(_ name: some StringProtocol) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
