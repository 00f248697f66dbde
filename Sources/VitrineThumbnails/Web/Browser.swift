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
    /// What browsers that understand the DevTools protocol are called.
    static let names = [
        "chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome-headless-shell",
        "chromium-headless-shell",
    ]

    let program: String
    var usesSandbox = true
    var reachesNetwork = true

    /// The path of the program in ``variable`` if that is set, else of the first of ``names`` in `PATH`.
    static var installed: String? {
        if let named = getenv(variable).map({ String(cString: $0) }), !named.isEmpty {
            return HelperProgram.isExecutable(named) ? named : nil
        }
        return names.lazy.flatMap(HelperProgram.inSearchPath).first(where: HelperProgram.isExecutable)
    }

    /// The error of a system without one.
    static func missing(for source: String) -> ThumbnailError {
        .toolMissing(
            source: source, name: "chromium",
            remedy: "install Chromium or Google Chrome, or set \(variable) to the path of one")
    }

    /// What the program is told. Pages' addresses are not among it.
    func arguments(profile: String) -> [String] {
        var arguments = [
            "--headless", "--remote-debugging-pipe", "--user-data-dir=\(profile)", "--hide-scrollbars", "--mute-audio",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check",
            "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
            "--disable-extensions", "--disable-sync", "--disable-breakpad", "--metrics-recording-only",
            "--password-store=basic", "--use-mock-keychain", "--block-new-web-contents",
        ]
        if !usesSandbox { arguments.append("--no-sandbox") }
        if !reachesNetwork { arguments.append("--host-resolver-rules=MAP * ~NOTFOUND") }
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
        of url: String, name: String, _ page: BrowserViewport, limits: ImageLimits, timeLimit: Double,
        cancellation: CancellationToken
    ) throws(ThumbnailError) -> [UInt8] {
        if cancellation.isCancelled { throw .cancelled(source: name) }
        guard !usesSandbox || geteuid() != 0 else {
            throw .unsupported(
                source: name,
                reason: "browsers have no sandbox for the user root: run as another user, or set usesSandbox to false")
        }
        let profile: TemporaryProfile
        let process: ToolProcess
        do {
            profile = try TemporaryProfile()
            process = try ToolProcess(
                path: program, arguments: arguments(profile: profile.path),
                environment: environment(profile: profile.path))
        } catch {
            throw .unreadable(source: name, reason: "\(error)")
        }
        // The processes are killed before the profile is removed: the later one goes first.
        defer { withExtendedLifetime(profile) {} }
        let seconds = timeLimit.isFinite ? min(max(0, timeLimit), 1e9) : 1e9
        let session = BrowserSession(
            process: process, name: name, deadline: .now + .seconds(seconds), cancellation: cancellation,
            maximumReply: limits.maximumInputBytes / 3 * 4 + 4_096, maximumPixels: limits.maximumPixels)
        return try session.screenshot(of: url, page)
    }
}
