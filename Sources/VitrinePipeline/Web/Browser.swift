import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An installed browser, started once for each page.
struct Browser {
    /// The environment variable that names one.
    static let variable = "VITRINE_BROWSER"
    /// The names of browsers that support the DevTools protocol.
    static let names = [
        "chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome-headless-shell",
        "chromium-headless-shell",
    ]

    let program: String
    var usesSandbox = true
    /// Bytes of memory all processes may use together.
    var maximumMemory = 2 << 30
    /// The budget that the browser shares with the helper programs.
    var memory = HelperMemory.shared
    #if os(Linux)
    var network = PageNetwork.system
    #endif


    /// The path of the program in ``variable`` if that is set, else of the first of ``names`` in `PATH`.
    static var installed: String? {
        if let named = getenv(variable).map({ String(cString: $0) }), !named.isEmpty {
            return HelperProgram.isExecutable(named) ? named : nil
        }
        return names.lazy.flatMap(HelperProgram.inSearchPath).first(where: HelperProgram.isExecutable)
    }

    /// The error of a system without one.
    static func missing(for source: String) -> ImagePipelineError {
        .toolMissing(
            source: source, name: "chromium",
            remedy: "install Chromium or Google Chrome, or set \(variable) to the path of one")
    }

    /// The arguments of the program. Addresses of pages are not among them.
    ///
    /// - Parameter proxy: The port of the page's proxy; nil for a page that loads nothing from other hosts.
    func arguments(profile: String, proxy: Int?) -> [String] {
        var arguments = [
            "--headless", "--remote-debugging-pipe", "--user-data-dir=\(profile)", "--hide-scrollbars", "--mute-audio",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check",
            "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
            "--disable-extensions", "--disable-sync", "--disable-breakpad", "--metrics-recording-only",
            "--password-store=basic", "--use-mock-keychain", "--block-new-web-contents",
        ]
        if !usesSandbox { arguments.append("--no-sandbox") }
        // Everything goes through the proxy, which alone resolves names and connects: also what is on this machine
        // (`<-loopback>`), and what would be sent in datagrams.
        let name = "vitrine-proxy.invalid"
        arguments += [
            "--proxy-server=http://\(name):\(proxy ?? 9)", "--proxy-bypass-list=<-loopback>", "--disable-quic",
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        ]
        let others = "MAP * ~NOTFOUND"
        arguments.append("--host-resolver-rules=" + (proxy == nil ? others : "MAP \(name) 127.0.0.1, \(others)"))
        return arguments
    }

    /// Everything it writes belongs into the profile; nothing else of this process's environment is its business.
    func environment(profile: String) -> [String] {
        let inherited = [
            "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH", "XDG_DATA_DIRS",
        ]
        var variables = inherited.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
        for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] { variables.append("\(name)=\(profile)") }
        return variables
    }

    /// The page as a PNG file.
    func screenshot(
        of url: String, name: String, _ page: BrowserViewport, access: PageAccess, limits: ImageLimits,
        timeLimit: Double, cancellation: CancellationToken
    ) throws(ImagePipelineError) -> [UInt8] {
        if cancellation.isCancelled { throw .cancelled(source: name) }
        guard !usesSandbox || geteuid() != 0 else {
            throw .unsupported(
                source: name,
                reason: "browsers have no sandbox for the user root: run as another user, or set usesSandbox to false")
        }
        #if os(Linux)
        guard let reservation = memory.reserve(maximumMemory, isCancelled: { cancellation.isCancelled }) else {
            throw .cancelled(source: name)
        }
        // Its processes have ended when this returns.
        defer { withExtendedLifetime(reservation) {} }
        let profile: TemporaryProfile
        do {
            profile = try TemporaryProfile()
        } catch {
            throw .unreadable(source: name, reason: "\(error)")
        }
        guard RunningBrowsers.add(profile.path) else { throw .cancelled(source: name) }
        // Here all processes have been killed, so that nothing writes to the profile while it is removed.
        defer {
            RunningBrowsers.remove(profile.path)
            withExtendedLifetime(profile) {}
        }
        let seconds = timeLimit.isFinite ? min(max(0, timeLimit), 1e9) : 1e9
        return try screenshot(
            of: url, name: name, page, access: access, profile: profile.path, limits: limits,
            maximumMemory: min(maximumMemory, reservation.share.total), deadline: .now + .seconds(seconds), cancellation: cancellation)
        #else
        throw .unsupported(source: name, reason: "web pages are drawn on Linux only")
        #endif
    }

    #if os(Linux)
    private func screenshot(
        of url: String, name: String, _ page: BrowserViewport, access: PageAccess, profile: String, limits: ImageLimits,
        maximumMemory: Int, deadline: ContinuousClock.Instant, cancellation: CancellationToken
    ) throws(ImagePipelineError) -> [UInt8] {
        let process: ToolProcess
        var proxy: PageProxy?
        do {
            if access.reachesNetwork { proxy = try PageProxy(access: access, network: network) }
            process = try ToolProcess(
                path: program, arguments: arguments(profile: profile, proxy: proxy?.port),
                environment: environment(profile: profile))
        } catch {
            throw .unreadable(source: name, reason: "\(error)")
        }
        RunningBrowsers.started(process.identifier, in: profile)
        defer {
            // Before the process is reaped: see RunningBrowsers.remove(_:).
            RunningBrowsers.remove(profile)
            withExtendedLifetime((process, proxy)) {}
        }
        let session = BrowserSession(
            process: process, name: name, access: access, proxy: proxy, deadline: deadline, cancellation: cancellation,
            memory: BrowserMemory(group: process.identifier, limit: maximumMemory),
            maximumReply: limits.maximumInputBytes / 3 * 4 + 4_096, maximumPixels: limits.maximumPixels)
        return try session.screenshot(of: url, page)
    }
    #endif
}
