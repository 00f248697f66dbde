import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// The schemes of addresses that a web page may have and load.
///
/// See ``VitrinePipeline/ImageSource/webPage(_:viewportWidth:showsFullPage:policy:schemes:usesSandbox:)``.
public enum WebPageScheme: Sendable, Hashable, CaseIterable {
    /// HTTP without encryption.
    case http
    /// HTTP over TLS.
    case https
    /// Files of this machine. A page reads those in its own directory and below.
    case file
    /// The page is in the address itself.
    case data

    var name: String { "\(self)" }
}

/// A web page as a source of images, drawn by an installed browser.
///
/// ```swift
/// var page = WebPageSource(url: "https://example.org")
/// page.viewportWidth = 1_280
/// let image = try page.image(RenderRequest(size: PixelSize(width: 320, height: 240)))
/// ```
///
/// Chromium, Google Chrome or their headless shell is started for each page, without a window, with a profile of its
/// own that is removed afterwards, and is ended with all its processes. It is the program in the environment variable
/// `VITRINE_BROWSER`, else the first of its usual names in `PATH`. A page takes a second or more; give pipelines a time
/// limit to match.
///
/// Pages run their scripts. All they load goes through a proxy of this process, on the loopback interface. The proxy
/// resolves names itself, checks every address by ``policy``, and connects to the address it has checked. This includes
/// redirects, frames, images, scripts and their own requests. The browser itself resolves no names and sends no
/// datagrams. Proxies of the environment are used as by `NetworkLoader`: when the policy allows private addresses or
/// trusts proxies.
///
/// - A page at a public address loads from public addresses only, unless the policy allows redirects to private ones.
///   The same goes for pages of files and of `data:` addresses.
/// - A page of a file reads files in its own directory and below only; other pages read none.
/// - A page that leads on at once, by a script or a `<meta http-equiv=refresh>` of up to one second, is followed, as
///   often as the policy allows redirects. The last page is drawn.
///
/// Servers may send 512 MiB to one page. Calls block: make them from a thread that may block.
///
/// Profiles of processes that were killed are removed when a later process draws its first page.
package struct WebPageSource: FileBackedSource, BlockingImageSource {
    /// The narrowest viewport, in CSS pixels.
    package static let minimumViewportWidth = 300
    /// The longest address that browsers accept, in bytes.
    static let maximumURLBytes = 2 << 20

    /// The page's address.
    package let url: String
    /// The allowed schemes. Default: `http` and `https`. Without those two, pages reach no network at all.
    package var allowedSchemes: Set<WebPageScheme> = [.http, .https]
    /// The policy for the addresses of the page and of all that it loads. Content types are not checked.
    /// Default: `URLAccessPolicy.userInitiated`. Use `URLAccessPolicy.publicOnly` for addresses that strangers name.
    package var policy = URLAccessPolicy.userInitiated
    /// The width that the page is laid out for, in CSS pixels, at least 300. The height is in
    /// proportion to the request's. Default nil: the request's own width.
    package var viewportWidth: Int?
    /// Whether the whole page is shown, however long, instead of its beginning. The image then has the page's shape.
    /// Default false.
    package var showsFullPage = false
    /// Seconds until the page must have been drawn. Default 20.
    package var timeLimit = 20.0
    /// Bytes of memory that all processes of the browser may use together. Default 2 GiB.
    ///
    /// The sum of anonymous and shared memory is looked at twenty times a second; beyond the limit the browser is
    /// ended, with ``ImagePipelineError/limitExceeded(source:limit:actual:allowed:)``. The limit is checked
    /// periodically, so a page can exceed it for a moment. The browser starts when the budget of all helpers,
    /// `WorkerPool.maximumTotalMemory`, has as much left.
    package var maximumMemory = 2 << 30
    /// Whether the browser keeps its pages in a sandbox. Default true. It cannot do so for the user root, nor in many
    /// containers; without it, a page that breaks the browser has all rights of this process.
    package var usesSandbox = true
    /// Identifies the page instead of its address.
    package var identifier: CacheKey?
    private var browser: String?
    package var memory = HelperMemory.shared
    #if os(Linux)
    /// How hosts are found and connected to.
    package var network: PageNetwork?
    #endif

    /// The page at an address, such as `https://example.org/`.
    package init(url: String) {
        self.url = url
    }

    /// A page drawn by another program, for tests.
    package init(url: String, browser: String) {
        self.url = url
        self.browser = browser
    }

    /// Whether there is a browser.
    package static var isAvailable: Bool { Browser.installed != nil }

    /// Returns the identity of the address or file, with all options that change the result.
    ///
    /// A page's content can change without its address; give those that do an ``identifier`` with a date.
    package func identity(_ lookup: FileIdentity.Lookup) throws(ImagePipelineError) -> CacheKey {
        if let identifier { return identifier }
        let isShort = url.utf8.count <= 1_024
        var key = CacheKey("web", isShort ? url : Hexadecimal.text(SHA256Digest.digest(of: Array(url.utf8))))
        if scheme == .file, let path = WebAddress.path(ofFile: url) {
            key = try FileIdentity.key(of: path, lookup).appending("web")
        }
        if let viewportWidth { key = key.appending("viewport \(viewportWidth)") }
        if !policy.allowsPrivateAddresses { key = key.appending("public") }
        if let restrictions = policy.restrictions { key = key.appending(restrictions) }
        if allowedSchemes != [.http, .https] {
            key = key.appending("schemes " + allowedSchemes.map { "\($0)" }.sorted().joined(separator: " "))
        }
        return showsFullPage ? key.appending("full page") : key
    }

    /// The page.
    ///
    /// - Throws: ``ImagePipelineError``: ``ImagePipelineError/toolMissing(source:name:remedy:)`` without a browser,
    ///   ``ImagePipelineError/unsupported(source:reason:)`` for an address that is not allowed or no address, also when
    ///   the page leads to one that ``policy`` refuses,
    ///   ``ImagePipelineError/limitExceeded(source:limit:actual:allowed:)`` beyond ``maximumMemory``,
    ///   ``ImagePipelineError/unreadable(source:reason:)`` when the page cannot be loaded or the browser does not
    ///   start, ``ImagePipelineError/timedOut(source:)``, ``ImagePipelineError/cancelled(source:)``.
    package func image(_ request: RenderRequest) throws -> PixelImage {
        try finish(draw(request), request)
    }

    /// Sizes that are laid out alike are drawn once; those of other viewports one by one.
    package func images(_ requests: [RenderRequest]) throws -> [PixelImage] {
        let pages = requests.map(viewport)
        guard let first = requests.first, pages.allSatisfy({ $0.isLaidOut(like: pages[0]) }) else {
            return try requests.map(image)
        }
        var largest = first
        largest.size.width = requests.map(\.size.width).max() ?? 0
        largest.size.height = requests.map(\.size.height).max() ?? 0
        let image = try draw(largest, pages.max { $0.scale < $1.scale })
        return try requests.map { try finish(image, $0) }
    }

    // MARK: Drawing

    private var scheme: WebPageScheme? {
        WebAddress.scheme(of: url).flatMap { name in WebPageScheme.allCases.first { $0.name == name } }
    }

    /// The viewport of the layout.
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

    private func draw(_ request: RenderRequest, _ page: BrowserViewport? = nil) throws(ImagePipelineError) -> PixelImage {
        guard let scheme, allowedSchemes.contains(scheme) else {
            let names = allowedSchemes.map(\.name).sorted().joined(separator: ", ")
            throw .unsupported(source: name, reason: "only addresses that begin with these are allowed: \(names)")
        }
        guard url.utf8.count <= Self.maximumURLBytes, !url.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw .unsupported(source: name, reason: "it is no address, or longer than 2 MiB")
        }
        let access = PageAccess(url: url, schemes: Set(allowedSchemes.map(\.name)), policy: policy)
        if let violation = violation(access) {
            throw .unsupported(source: name, reason: violation.description)
        }
        do throws(ImageError) {
            _ = try request.resizer.outputSize(for: PixelSize(width: 1_280, height: 800))
        } catch {
            throw ImagePipelineError(error, source: name)
        }
        guard let program = browser ?? Browser.installed else { throw Browser.missing(for: name) }
        var browser = Browser(program: program, usesSandbox: usesSandbox, maximumMemory: maximumMemory, memory: memory)
        #if os(Linux)
        if let network { browser.network = network }
        #endif
        let wanted = BrowserPage(
            url: url, name: name, viewport: page ?? viewport(request), access: access, limits: request.limits,
            cancellation: request.cancellation)
        let png = try browser.screenshot(of: wanted, timeLimit: timeLimit)
        do throws(ImageError) {
            return try ImageDecoder(limits: request.limits).decode(
                .bytes(png, name: name), cancellation: request.cancellation)
        } catch {
            throw ImagePipelineError(error, source: name)
        }
    }

    /// Why the address itself is refused, as far as it tells. The browser reads more notations than are read here, and
    /// its reading is checked later.
    private func violation(_ access: PageAccess) -> PolicyViolation? {
        guard scheme == .http || scheme == .https else { return nil }
        if !policy.allowsCredentials, SourceURL.withoutCredentials(url) != url { return .userInformation }
        guard let site = WebAddress.site(of: url) else { return nil }
        return access.check(site)
    }

    /// The drawn page at the request's size: exactly that, unless it has a shape of its own.
    private func finish(_ page: PixelImage, _ request: RenderRequest) throws(ImagePipelineError) -> PixelImage {
        var resizer = request.resizer
        if !showsFullPage, !request.size.isEmpty {
            switch request.mode {
            case .none, .limit: break
            // The viewport has this shape but for rounding.
            case .stretch, .fit, .fill, .crop:
                resizer.mode = .stretch
                resizer.allowsUpscaling = true
            }
        }
        do throws(ImageError) {
            return try resizer.resize(page)
        } catch {
            throw ImagePipelineError(error, source: name)
        }
    }

    /// The name of the page in errors: its address without a name and password, shortened.
    var name: String { WebAddress.short(url) }
}

/// The viewport of a page's layout, in CSS pixels.
package struct BrowserViewport: Sendable, Hashable {
    /// The longest side of an image that Chromium draws in one piece.
    package static let longest = 16_384

    package var width: Int
    package var height: Int
    /// Pixels a CSS pixel, from 1.
    package var scale: Double
    /// Whether all of the page is drawn.
    package var isFullPage: Bool

    package init(width: Int, height: Int, scale: Double, isFullPage: Bool) {
        self.width = width
        self.height = height
        self.scale = scale
        self.isFullPage = isFullPage
    }

    /// Whether a page looks the same for both but for its resolution.
    func isLaidOut(like other: BrowserViewport) -> Bool {
        width == other.width && height == other.height && isFullPage == other.isFullPage
    }
}
