import VitrineCore
import VitrineImaging

/// A web page as a source of thumbnails, drawn by an installed browser (R105).
///
/// ```swift
/// var page = WebPageSource(url: "https://example.org")
/// page.viewportWidth = 1_280
/// let thumbnail = try page.thumbnail(RenderRequest(size: PixelSize(width: 320, height: 240)))
/// ```
///
/// Chromium, Google Chrome or their headless shell is started for each page, without a window, with a profile of its
/// own that is removed afterwards, and is ended with all its processes. It is the program in the environment variable
/// `VITRINE_BROWSER`, else the first of its usual names in `PATH`. A page takes a second or more; give services a time
/// limit to match.
///
/// Pages run their programs and reach what this machine reaches, also in its own network. Draw only those of addresses
/// you would visit. Calls block: make them from a thread that may block.
public struct WebPageSource: ThumbnailSource {
    /// What a page's address may begin with, and what the page may load.
    public enum Scheme: String, Sendable, Hashable, Codable, CaseIterable {
        case http, https
        /// Files of this machine. Such a page can show any file that this process may read.
        case file
        /// The page is in the address itself.
        case data
    }

    /// The narrowest viewport, in CSS pixels (as the ancestor had it).
    public static let minimumViewportWidth = 300
    /// The longest address, in bytes: what browsers take.
    static let maximumURLBytes = 2 << 20

    /// The page's address.
    public let url: String
    /// What addresses may begin with. Default `http` and `https`. Without those two, pages reach no network at all.
    public var allowedSchemes: Set<Scheme> = [.http, .https]
    /// The width that the page is laid out for, in CSS pixels, at least ``minimumViewportWidth``. The height is in
    /// proportion to the request's. Default nil: the request's own width.
    public var viewportWidth: Int?
    /// Whether the whole page is shown, however long, instead of its beginning. The picture then has the page's shape.
    /// Default false.
    public var showsFullPage = false
    /// Seconds until the page must have been drawn. Default 20.
    public var timeLimit = 20.0
    /// Whether the browser keeps its pages in a sandbox. Default true. It cannot do so for the user root, nor in many
    /// containers; without it, a page that breaks the browser has all rights of this process.
    public var usesSandbox = true
    /// What the page is known by instead of its address (R106).
    public var identifier: CacheKey?
    private var browser: String?

    /// The page at an address, such as `https://example.org/`.
    public init(url: String) {
        self.url = url
    }

    /// A page drawn by another program, for tests.
    package init(url: String, browser: String) {
        self.url = url
        self.browser = browser
    }

    /// Whether there is a browser.
    public static var isAvailable: Bool { Browser.installed != nil }

    /// The address, for files the file as well, and what changes the picture.
    ///
    /// A page's content can change without its address; give those that do an ``identifier`` with a date.
    public func identity() throws(ThumbnailError) -> CacheKey {
        if let identifier { return identifier }
        let isShort = url.utf8.count <= 1_024
        var key = CacheKey("web", isShort ? url : Hexadecimal.text(SHA256Digest.digest(of: Array(url.utf8))))
        if scheme == .file, let path = WebAddress.path(ofFile: url) {
            key = try FileIdentity.key(of: path).appending("web")
        }
        if let viewportWidth { key = key.appending("viewport \(viewportWidth)") }
        return showsFullPage ? key.appending("full page") : key
    }

    /// The page.
    ///
    /// - Throws: ``ThumbnailError``: ``ThumbnailError/toolMissing(source:name:remedy:)`` without a browser,
    ///   ``ThumbnailError/unsupported(source:reason:)`` for an address that is not allowed or no address,
    ///   ``ThumbnailError/unreadable(source:reason:)`` when the page cannot be loaded or the browser does not start,
    ///   ``ThumbnailError/timedOut(source:)``, ``ThumbnailError/cancelled(source:)``.
    public func thumbnail(_ request: RenderRequest) throws -> Image {
        try finish(draw(request), request)
    }

    /// Sizes that are laid out alike are drawn once; those of other viewports one by one.
    public func thumbnails(_ requests: [RenderRequest]) throws -> [Image] {
        let pages = requests.map(viewport)
        guard let first = requests.first, pages.allSatisfy({ $0.isLaidOut(like: pages[0]) }) else {
            return try requests.map(thumbnail)
        }
        var largest = first
        largest.size.width = requests.map(\.size.width).max() ?? 0
        largest.size.height = requests.map(\.size.height).max() ?? 0
        let image = try draw(largest, pages.max { $0.scale < $1.scale })
        return try requests.map { try finish(image, $0) }
    }

    // MARK: Drawing

    private var scheme: Scheme? { WebAddress.scheme(of: url).flatMap(Scheme.init) }

    /// What the page is laid out for.
    package func viewport(_ request: RenderRequest) -> BrowserViewport {
        let size = request.size
        var width = viewportWidth ?? (size.width > 0 ? size.width : 1_280)
        width = min(max(width, Self.minimumViewportWidth), BrowserViewport.longest)
        // Sides without limit leave the shape to the browser: that of most displays.
        let shape = size.isEmpty ? 0.625 : Double(size.height) / Double(size.width)
        let height = min(max(1, (Double(width) * shape).rounded()), Double(BrowserViewport.longest))
        let scale = request.mode == .none ? 1 : Double(size.width) / Double(width)
        return BrowserViewport(
            width: width, height: Int(height), scale: min(max(1, scale), 4), isFullPage: showsFullPage)
    }

    private func draw(_ request: RenderRequest, _ page: BrowserViewport? = nil) throws(ThumbnailError) -> Image {
        guard let scheme, allowedSchemes.contains(scheme) else {
            let names = allowedSchemes.map(\.rawValue).sorted().joined(separator: ", ")
            throw .unsupported(source: name, reason: "only addresses that begin with these are allowed: \(names)")
        }
        guard url.utf8.count <= Self.maximumURLBytes, !url.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw .unsupported(source: name, reason: "it is no address, or longer than 2 MiB")
        }
        do throws(ImageError) {
            _ = try request.resizer.outputSize(for: PixelSize(width: 1_280, height: 800))
        } catch {
            throw ThumbnailError(error, source: name)
        }
        guard let program = browser ?? Browser.installed else { throw Browser.missing(for: name) }
        let browser = Browser(
            program: program, usesSandbox: usesSandbox,
            reachesNetwork: !allowedSchemes.isDisjoint(with: [.http, .https]))
        let png = try browser.screenshot(
            of: url, name: name, page ?? viewport(request), limits: request.limits, timeLimit: timeLimit,
            cancellation: request.cancellation)
        do throws(ImageError) {
            return try ImageDecoder(limits: request.limits).decode(
                .bytes(png, name: name), cancellation: request.cancellation)
        } catch {
            throw ThumbnailError(error, source: name)
        }
    }

    /// The drawn page at the request's size: exactly that, unless it has a shape of its own.
    private func finish(_ page: Image, _ request: RenderRequest) throws(ThumbnailError) -> Image {
        var resizer = request.resizer
        if !showsFullPage, !request.size.isEmpty {
            switch request.mode {
            case .none, .limit: break
            // The viewport has this shape but for rounding.
            case .fill, .aspectFit, .aspectFill, .crop:
                resizer.mode = .fill
                resizer.allowsUpscaling = true
            }
        }
        do throws(ImageError) {
            return try resizer.resize(page)
        } catch {
            throw ThumbnailError(error, source: name)
        }
    }

    /// What errors call the page: its address, cut to what can be read.
    var name: String { url.utf8.count <= 200 ? url : String(url.prefix(200)) + "…" }
}
