import VitrineCore
import VitrineNetwork

/// Where the tab is: which page it shows, whether that is loaded, and whether it is about to be replaced.
struct PageNavigation {
    /// The longest delay of a `<meta http-equiv=refresh>` that is waited for, in seconds. Pages that show something
    /// first are drawn as they are.
    static let longestDelay = 1.0
    /// Loads that are kept in mind.
    private static let maximumLoads = 1_024

    /// The frame of the tab itself.
    var frame: String?
    /// The document that the frame shows.
    private(set) var loader: String?
    /// The address of a page that could not be loaded, if the frame shows the browser's error page.
    private(set) var unreachable: String?
    /// How many documents have followed the first one.
    private(set) var count = 0
    private var loaded: Set<String> = []
    private var isRequested = false
    private var isScheduled = false

    /// Whether the page is loaded and stays.
    var isSettled: Bool { loader.map(loaded.contains) == true && !isRequested && !isScheduled }

    /// Forgets the empty document of a new tab.
    mutating func reset() { loader = nil }

    /// Notes the document that the user asked for, unless another has followed it already.
    mutating func begin(loader: String, frame: String?) {
        if let frame { self.frame = frame }
        if self.loader == nil { self.loader = loader }
    }

    /// Notes an event of the domain Page.
    mutating func take(_ method: String, _ event: BrowserReply.Parameters) {
        switch method {
        case "Page.lifecycleEvent":
            guard event.name == "load", let id = event.loaderId, loaded.count < Self.maximumLoads else { return }
            loaded.insert(id)
        case "Page.frameNavigated":
            guard let frame = event.frame, frame.id == self.frame, frame.parentId == nil else { return }
            if loader != nil, loader != frame.loaderId { count += 1 }
            loader = frame.loaderId
            unreachable = frame.unreachableUrl
            (isRequested, isScheduled) = (false, false)
        case "Page.frameRequestedNavigation":
            if event.frameId == frame { isRequested = true }
        case "Page.frameScheduledNavigation":
            if event.frameId == frame, (event.delay ?? .infinity) <= Self.longestDelay { isScheduled = true }
        case "Page.frameClearedScheduledNavigation":
            if event.frameId == frame { isScheduled = false }
        case "Page.frameStoppedLoading":
            guard event.frameId == frame else { return }
            // Also when a page led to a download or to nothing. A page that did so early is never told to be loaded.
            isRequested = false
            if let loader, loaded.count < Self.maximumLoads { loaded.insert(loader) }
        case "Page.navigatedWithinDocument":
            if event.frameId == frame { isRequested = false }
        default: break
        }
    }
}

/// The documents and files a browser asks for, each before it is loaded.
struct DocumentRequests {
    /// Requests that are remembered, to find the origin of a redirect.
    private static let maximumRequests = 1_024

    /// The address of the last document for the tab itself.
    private(set) var mainURL: String?
    /// Why the last such document was not loaded; nil if it was.
    private(set) var refusal: String?
    private let access: PageAccess
    /// The directory that a local page may read from, with `/` at its end.
    private var directory: String?
    private var isLocal = false
    private var requests: [String: (url: String, hops: Int)] = [:]

    init(access: PageAccess) { self.access = access }

    /// Notes the address that the user gave.
    mutating func begin(_ url: String) {
        mainURL = url
        guard let path = WebAddress.path(ofFile: url) else { return }
        isLocal = true
        directory = LocalFile.resolved(path).map(LocalFile.directory)
    }

    /// Whether something may be loaded.
    mutating func decide(_ id: String, url: String, isMain: Bool, redirectedFrom previous: String?) -> Bool {
        let origin = previous.flatMap { requests[$0] }
        let hops = origin.map { $0.hops + 1 } ?? 0
        if requests.count >= Self.maximumRequests { requests.removeAll() }
        requests[id] = (url, hops)
        let reason = hops > access.policy.maximumRedirects
            ? "it is redirected more than \(access.policy.maximumRedirects) times" : violation(url, from: origin?.url)
        if isMain {
            mainURL = url
            refusal = reason
        }
        return reason == nil
    }

    private func violation(_ url: String, from origin: String?) -> String? {
        switch WebAddress.scheme(of: url) {
        case "data", "blob", "about": return nil
        case "file":
            guard isLocal, let path = WebAddress.path(ofFile: url) else {
                return "\(WebAddress.short(url)) is a file, which a page elsewhere may not read"
            }
            // A file that is not there is the browser's to tell.
            guard let resolved = LocalFile.resolved(path) else { return nil }
            if let directory, resolved.hasPrefix(directory) { return nil }
            return "\(path) is not below the page's own directory"
        case "http", "https":
            guard let site = WebAddress.site(of: url) else {
                return "\(WebAddress.short(url)) has no host that can be checked"
            }
            access.begin(at: site)
            let violation = access.check(site) ?? WebAddress.site(of: origin ?? "").flatMap { origin in
                access.policy.check(redirectFrom: origin, to: site)
            }
            return violation.map { "\(site.origin) is not loaded: \($0)" }
        default: return "\(WebAddress.short(url)) has a scheme that is not loaded"
        }
    }
}
