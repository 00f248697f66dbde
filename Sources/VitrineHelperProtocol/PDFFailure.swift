import VitrineImaging

/// Why a document was not described or a page not drawn, where ``ImageError`` has no word for it.
///
/// It crosses from the helper as the reason of ``ImageError/unsupported(input:reason:)``.
package enum PDFFailure: Sendable, Equatable {
    case notAPDF
    /// Encrypted, and no password came along.
    case encrypted
    case wrongPassword
    /// There are `count` pages, and the one asked for is not among them.
    case noSuchPage(count: Int)

    private static let pagePrefix = "no such page among "

    /// The error that carries it.
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

    /// The failure that `error` carries; nil when it carries none.
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
