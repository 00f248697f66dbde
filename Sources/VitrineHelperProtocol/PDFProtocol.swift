import VitrineImaging

/// The parameters of requests to `vitrine-pdf`.
package struct PDFParameters: Sendable, Equatable {
    /// The most page sizes of one description, which must fit ``WorkerProtocol/maximumPacket``.
    package static let maximumPageSizes = 500

    /// The page to draw, or the first page to describe. From 1.
    package var page = 1
    /// The number of pages whose sizes are described.
    package var pageSizes = 0
    package var target = DocumentTarget()
    /// The colour under the page.
    package var background = PixelColor.white
    /// The user's or the owner's password; nil for none.
    package var password: String?

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(page)
        wire.write(pageSizes)
        target.write(to: &wire)
        for channel in [background.red, background.green, background.blue, background.alpha] { wire.write(channel) }
        wire.write(password != nil)
        wire.write(Array((password ?? "").utf8))
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        page = wire.int()
        pageSizes = wire.int()
        target = DocumentTarget(&wire)
        background = PixelColor(
            red: wire.integer(), green: wire.integer(), blue: wire.integer(), alpha: wire.integer())
        let hasPassword = wire.bool()
        let text = String(decoding: wire.byteArray(), as: UTF8.self)
        password = hasPassword ? text : nil
        guard wire.isComplete else { return nil }
    }
}

/// The description of a document by `vitrine-pdf`.
package struct PDFDescription: Sendable, Equatable {
    package var pageCount = 0
    /// Whether the document needs a password.
    package var needsPassword = false
    /// The title, at most 1,000 bytes of UTF-8; empty for none.
    package var title = ""
    /// Widths and heights in points of the requested pages that exist; 0 by 0 for unreadable pages.
    package var pageSizes: [PointSize] = []
    /// The number of documents that this helper has opened since its start.
    package var opened = 0

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(pageCount)
        wire.write(needsPassword)
        wire.write(title)
        wire.write(opened)
        wire.write(UInt16(truncatingIfNeeded: pageSizes.count))
        for size in pageSizes {
            wire.write(size.width)
            wire.write(size.height)
        }
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes and impossible values.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        pageCount = wire.int()
        needsPassword = wire.bool()
        title = wire.text()
        opened = wire.int()
        let count = Int(wire.integer(UInt16.self))
        guard count <= PDFParameters.maximumPageSizes else { return nil }
        for _ in 0..<count { pageSizes.append(.init(width: wire.double(), height: wire.double())) }
        guard wire.isComplete, pageCount > 0,
            pageSizes.allSatisfy({ $0.width.isFinite && $0.height.isFinite && $0.width >= 0 && $0.height >= 0 })
        else { return nil }
    }
}

/// An error of PDF documents without a case of its own in ``ImageError``.
///
/// The helper sends it as the reason of ``ImageError/unsupported(input:reason:)``.
package enum PDFFailure: Sendable, Equatable {
    case notAPDF
    /// The document is encrypted, and the request has no password.
    case encrypted
    case wrongPassword
    /// The requested page is not among the `count` pages.
    case noSuchPage(count: Int)

    private static let pagePrefix = "no such page among "

    /// The error that contains the failure.
    package var error: ImageError {
        let reason =
            switch self {
            case .notAPDF: "not a PDF"
            case .encrypted: "encrypted"
            case .wrongPassword: "wrong password"
            case .noSuchPage(let count): "\(Self.pagePrefix)\(count)"
            }
        return .unsupported(input: "input", reason: reason)
    }

    /// The failure in `error`; nil for other errors.
    package init?(_ error: ImageError) {
        guard case .unsupported(_, let reason) = error else { return nil }
        switch reason {
        case "not a PDF": self = .notAPDF
        case "encrypted": self = .encrypted
        case "wrong password": self = .wrongPassword
        default:
            guard reason.hasPrefix(Self.pagePrefix), let count = Int(reason.dropFirst(Self.pagePrefix.count)) else {
                return nil
            }
            self = .noSuchPage(count: count)
        }
    }
}
