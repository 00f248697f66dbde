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
import VitrineCore
import VitrineImaging
import VitrinePipeline

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
        var arguments = commonArguments(profile: profile)
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

    /// The arguments that have nothing to do with the network.
    func commonArguments(profile: String) -> [String] {
        let arguments = [
            "--headless", "--remote-debugging-pipe", "--user-data-dir=\(profile)", "--hide-scrollbars", "--mute-audio",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check",
            "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
            "--disable-extensions", "--disable-sync", "--disable-breakpad", "--metrics-recording-only",
            "--password-store=basic", "--use-mock-keychain", "--block-new-web-contents",
        ]
        return usesSandbox ? arguments : arguments + ["--no-sandbox"]
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
    func screenshot(of page: BrowserPage, timeLimit: Double) throws(ImagePipelineError) -> [UInt8] {
        let (name, cancellation) = (page.name, page.cancellation)
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
            throw .unreadable(source: name, reason: ErrorText.nested(error, about: name))
        }
        guard RunningBrowsers.add(profile.path) else { throw .cancelled(source: name) }
        // Here all processes have been killed, so that nothing writes to the profile while it is removed.
        defer {
            RunningBrowsers.remove(profile.path)
            withExtendedLifetime(profile) {}
        }
        let seconds = timeLimit.isFinite ? min(max(0, timeLimit), 1e9) : 1e9
        return try screenshot(
            of: page, profile: profile.path, maximumMemory: min(maximumMemory, reservation.share.total),
            deadline: .now + .seconds(seconds))
        #else
        throw .unsupported(source: name, reason: "web pages are drawn on Linux only")
        #endif
    }

    #if os(Linux)
    private func screenshot(
        of page: BrowserPage, profile: String, maximumMemory: Int, deadline: ContinuousClock.Instant
    ) throws(ImagePipelineError) -> [UInt8] {
        let process: ToolProcess
        var proxy: PageProxy?
        do {
            if page.access.reachesNetwork { proxy = try PageProxy(access: page.access, network: network) }
            process = try ToolProcess(
                path: program, arguments: arguments(profile: profile, proxy: proxy?.port),
                environment: environment(profile: profile))
        } catch {
            throw .unreadable(source: page.name, reason: ErrorText.nested(error, about: page.name))
        }
        RunningBrowsers.started(process.identifier, in: profile)
        defer {
            // Before the process is reaped: see RunningBrowsers.remove(_:).
            RunningBrowsers.remove(profile)
            withExtendedLifetime((process, proxy)) {}
        }
        let session = BrowserSession(
            process: process, page: page, proxy: proxy, deadline: deadline,
            memory: BrowserMemory(group: process.identifier, limit: maximumMemory))
        return try session.screenshot()
    }
    #endif
}

/// A page to be drawn.
struct BrowserPage {
    let url: String
    /// The name of the page in errors.
    let name: String
    let viewport: BrowserViewport
    /// The addresses that it may load.
    let access: PageAccess
    let limits: ImageLimits
    let cancellation: CancellationToken
}

/// The memory of a browser's processes, looked at while a page is drawn.
///
/// Limits of the kernel for one process do not work here: browsers reserve terabytes of address space, and have as
/// many processes as they like. So the resident memory of all processes of the group is added up.
struct BrowserMemory {
    /// Seconds between two looks, and the share of the time they may take.
    private static let interval = Duration.milliseconds(50)
    private static let costFactor = 20

    private let group: Int32
    /// Bytes.
    let limit: Int
    private var next = ContinuousClock.now

    init(group: Int32, limit: Int) {
        self.group = group
        self.limit = limit
    }

    /// When the next look is due.
    var due: ContinuousClock.Instant { next }

    /// Bytes in use when that is more than the limit; nil otherwise, and when no look is due.
    mutating func excess() -> Int? {
        let start = ContinuousClock.now
        guard start >= next else { return nil }
        let bytes = Self.resident(group: group)
        // Where the system has thousands of processes, a look takes a while.
        next = .now + max(Self.interval, (ContinuousClock.now - start) * Self.costFactor)
        return bytes > limit ? bytes : nil
    }

    /// Anonymous and shared memory in use by all processes of a group, in bytes (proc(5)). Memory that several
    /// processes share counts for each; files that are mapped do not count. 0 on systems without `/proc`.
    static func resident(group: Int32) -> Int {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.reduce(0) { sum, name in
            guard name.utf8.allSatisfy({ (0x30...0x39).contains($0) }), isMember("/proc/\(name)/stat", of: group) else {
                return sum
            }
            return sum &+ memory("/proc/\(name)/status")
        }
    }

    private static func isMember(_ path: String, of group: Int32) -> Bool {
        // The name in parentheses may hold anything: state, parent and group follow the last parenthesis.
        guard let text = contents(path), let end = text.lastIndex(of: UInt8(ascii: ")")) else { return false }
        let fields = text[(end + 1)...].split(separator: 0x20)
        return fields.count > 2 && String(decoding: fields[2], as: UTF8.self) == String(group)
    }

    private static func memory(_ path: String) -> Int {
        guard let text = contents(path) else { return 0 }
        return text.split(separator: 0x0A).reduce(0) { sum, line in
            guard line.starts(with: "RssAnon:".utf8) || line.starts(with: "RssShmem:".utf8) else { return sum }
            let digits = line.filter { (0x30...0x39).contains($0) }
            return sum &+ (Int(String(decoding: digits, as: UTF8.self)) ?? 0) &* 1_024
        }
    }

    private static func contents(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, filled in
            repeat { count = read(descriptor, buffer.baseAddress, buffer.count) } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        return count > 0 ? bytes : nil
    }
}

/// The browsers of this process, for programs that a signal ends.
///
/// The default action of a signal ends a process at once: the profile of a page that is being drawn stays behind until
/// the next process that draws a page sweeps it. A program that handles signals calls ``endAll()`` before it ends.
package enum RunningBrowsers {
    /// The path of the browser that draws web pages; nil if none is installed.
    package static var installed: String? { Browser.installed }

    private struct State {
        var isEnding = false
        /// By the path of the profile: the process group of the browser, once there is one.
        var groups: [String: Int32?] = [:]
    }

    private static let state = Locked(State())

    /// Notes a profile before its browser starts.
    ///
    /// - Returns: false when the process is about to end.
    static func add(_ profile: String) -> Bool {
        state.withLock { state in
            guard !state.isEnding else { return false }
            state.groups[profile] = .some(nil)
            return true
        }
    }

    static func started(_ group: Int32, in profile: String) {
        state.withLock { state in
            state.groups[profile] = group
            if state.isEnding { kill(-group, SIGKILL) }
        }
    }

    /// Forgets a profile; to be called before its browser is reaped, as another process may get its number then.
    static func remove(_ profile: String) {
        _ = state.withLock { $0.groups.removeValue(forKey: profile) }
    }

    /// Kills all browsers and removes their profiles. Pages drawn later fail.
    package static func endAll() {
        let profiles = state.withLock { state in
            state.isEnding = true
            for case let group? in state.groups.values { kill(-group, SIGKILL) }
            return Array(state.groups.keys)
        }
        for profile in profiles { TemporaryProfile.remove(profile) }
    }
}
