import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A talk with a browser about one page: the DevTools protocol, messages of JSON that end with a zero byte.
///
/// Source: https://chromedevtools.github.io/devtools-protocol/ (Target, Page, Emulation).
final class BrowserSession {
    private let process: ToolProcess
    private let name: String
    private let deadline: ContinuousClock.Instant
    private let cancellation: CancellationToken
    private let maximumReply: Int
    private let maximumPixels: Int
    private var received: [UInt8] = []
    /// Bytes of ``received`` without a zero.
    private var searched = 0
    private var lastID = 0
    private var session: String?
    /// The loads that have been completed.
    private var loaded: Set<String> = []

    init(
        process: ToolProcess, name: String, deadline: ContinuousClock.Instant, cancellation: CancellationToken,
        maximumReply: Int, maximumPixels: Int
    ) {
        self.process = process
        self.name = name
        self.deadline = deadline
        self.cancellation = cancellation
        self.maximumReply = maximumReply
        self.maximumPixels = maximumPixels
    }

    /// Loads the page and draws it, as a PNG file.
    func screenshot(of url: String, _ page: BrowserViewport) throws(ThumbnailError) -> [UInt8] {
        var parameters = BrowserCommand.Parameters()
        parameters.url = "about:blank"
        let target = try call("Target.createTarget", parameters).targetId
        parameters = .init()
        parameters.targetId = target
        parameters.flatten = true
        session = try call("Target.attachToTarget", parameters).sessionId
        _ = try call("Page.enable")
        parameters = .init()
        parameters.enabled = true
        _ = try call("Page.setLifecycleEventsEnabled", parameters)
        parameters = .init()
        (parameters.width, parameters.height) = (Double(page.width), Double(page.height))
        parameters.deviceScaleFactor = page.scale
        parameters.mobile = false
        _ = try call("Emulation.setDeviceMetricsOverride", parameters)
        parameters = .init()
        parameters.url = url
        let load = try call("Page.navigate", parameters)
        if let text = load.errorText, !text.isEmpty { throw .unreadable(source: name, reason: text) }
        guard let loader = load.loaderId else { throw malformed }
        while !loaded.contains(loader) { try take(next()) }
        return try capture(page)
    }

    private func capture(_ page: BrowserViewport) throws(ThumbnailError) -> [UInt8] {
        var parameters = BrowserCommand.Parameters()
        parameters.format = "png"
        if page.isFullPage {
            guard let content = try call("Page.getLayoutMetrics").cssContentSize else { throw malformed }
            let longest = Double(BrowserViewport.longest) / page.scale
            let area = Double(maximumPixels) / (page.scale * page.scale)
            let width = min(max(Double(page.width), content.width.rounded(.up)), longest)
            let height = min(max(1, content.height.rounded(.up)), longest, (area / width).rounded(.down))
            guard height >= 1 else {
                throw .limitExceeded(source: name, limit: .pixels, actual: Int(width), allowed: maximumPixels)
            }
            parameters.captureBeyondViewport = true
            parameters.clip = .init(width: width, height: height)
        }
        guard let text = try call("Page.captureScreenshot", parameters).data, let data = Data(base64Encoded: text)
        else { throw malformed }
        return [UInt8](data)
    }

    // MARK: Messages

    private var malformed: ThumbnailError {
        .unreadable(source: name, reason: "the browser's answers cannot be read")
    }

    private func send(_ method: String, _ parameters: BrowserCommand.Parameters) throws(ThumbnailError) -> Int {
        lastID += 1
        let command = BrowserCommand(id: lastID, method: method, params: parameters, sessionId: session)
        guard let bytes = try? JSONEncoder().encode(command) else { throw malformed }
        do throws(ToolProcess.Failure) {
            try process.write([UInt8](bytes) + [0], until: deadline, cancellation: cancellation)
        } catch {
            throw failure(error)
        }
        return lastID
    }

    /// Sends a command and waits for its answer.
    private func call(
        _ method: String, _ parameters: BrowserCommand.Parameters = .init()
    ) throws(ThumbnailError) -> BrowserReply.Result {
        let id = try send(method, parameters)
        while true {
            let reply = try next()
            guard reply.id == id else {
                try take(reply)
                continue
            }
            if let error = reply.error {
                throw .unreadable(source: name, reason: "the browser answers \(method): \(error.message ?? "no")")
            }
            return reply.result ?? .init()
        }
    }

    /// Notes an event. Pages that ask something are told no, or they would wait for ever.
    private func take(_ event: BrowserReply) throws(ThumbnailError) {
        switch event.method {
        case "Page.lifecycleEvent":
            if event.params?.name == "load", let id = event.params?.loaderId { loaded.insert(id) }
        case "Page.javascriptDialogOpening":
            var parameters = BrowserCommand.Parameters()
            parameters.accept = false
            _ = try send("Page.handleJavaScriptDialog", parameters)
        default: break
        }
    }

    /// The next message.
    private func next() throws(ThumbnailError) -> BrowserReply {
        while true {
            if let end = received[searched...].firstIndex(of: 0) {
                let message = Data(received[..<end])
                received.removeSubrange(...end)
                searched = 0
                guard let reply = try? JSONDecoder().decode(BrowserReply.self, from: message) else { throw malformed }
                return reply
            }
            searched = received.count
            guard received.count <= maximumReply else {
                throw .limitExceeded(
                    source: name, limit: .inputBytes, actual: received.count, allowed: maximumReply)
            }
            do throws(ToolProcess.Failure) {
                try process.read(into: &received, until: deadline, cancellation: cancellation)
            } catch {
                throw failure(error)
            }
        }
    }

    private func failure(_ failure: ToolProcess.Failure) -> ThumbnailError {
        switch failure {
        case .ended:
            .unreadable(source: name, reason: "the browser has ended; its sandbox may not work on this system")
        case .timedOut: .timedOut(source: name)
        case .cancelled: .cancelled(source: name)
        case .system(let error): .unreadable(source: name, reason: "\(error)")
        }
    }
}
