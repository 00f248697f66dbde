

#if os(Linux)
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A talk with a browser about one page: the DevTools protocol, messages of JSON that end with a zero byte.
///
/// Source: https://chromedevtools.github.io/devtools-protocol/ (Target, Page, Fetch, Emulation).
final class BrowserSession {
    private var pipe: BrowserPipe
    private let url: String
    private let viewport: BrowserViewport
    private let name: String
    private let access: PageAccess
    /// Set where the page loads from other hosts.
    private let proxy: PageProxy?
    private let deadline: ContinuousClock.Instant
    private let cancellation: CancellationToken
    private var memory: BrowserMemory
    private let maximumReply: Int
    private let maximumPixels: Int
    private var lastID = 0
    private var session: String?
    private var documents: DocumentRequests
    private var navigation = PageNavigation()

    init(
        process: ToolProcess, page: BrowserPage, proxy: PageProxy?, deadline: ContinuousClock.Instant,
        memory: BrowserMemory
    ) {
        pipe = BrowserPipe(process)
        url = page.url
        viewport = page.viewport
        name = page.name
        access = page.access
        self.proxy = proxy
        self.deadline = deadline
        cancellation = page.cancellation
        self.memory = memory
        // A screenshot comes in base 64: four bytes for three.
        maximumReply = page.limits.maximumInputBytes / 3 * 4 + 4_096
        maximumPixels = min(page.limits.maximumPixels, page.limits.maximumResultPixels)
        documents = DocumentRequests(access: page.access)
    }

    /// Loads the page and draws it, as a PNG file. Where it leads on to another at once, that one is drawn.
    func screenshot() throws(ImagePipelineError) -> [UInt8] {
        let page = viewport
        try prepare(page)
        documents.begin(url)
        navigation.reset()
        var parameters = BrowserCommand.Parameters()
        parameters.url = url
        let load = try call("Page.navigate", parameters)
        if let text = load.errorText, !text.isEmpty { throw failure(text) }
        guard let loader = load.loaderId else { throw malformed }
        navigation.begin(loader: loader, frame: load.frameId)
        while true {
            while !navigation.isSettled {
                try check()
                try take(next())
            }
            try check()
            let drawn = navigation.loader
            do throws(ImagePipelineError) {
                let png = try capture(page, of: drawn)
                if let png, navigation.loader == drawn, navigation.isSettled { return png }
            } catch .unreadable where navigation.loader != drawn || !navigation.isSettled {
                // The page went while it was drawn.
            }
        }
    }

    /// Makes a tab, and has the browser ask before it loads documents and files.
    private func prepare(_ page: BrowserViewport) throws(ImagePipelineError) {
        var parameters = BrowserCommand.Parameters()
        parameters.patterns = [.init(urlPattern: "*", resourceType: "Document"), .init(urlPattern: "file:*")]
        _ = try call("Fetch.enable", parameters)
        parameters = .init()
        parameters.behavior = "deny"
        _ = try call("Browser.setDownloadBehavior", parameters)
        parameters = .init()
        parameters.url = "about:blank"
        let target = try call("Target.createTarget", parameters).targetId
        navigation.frame = target
        parameters = .init()
        parameters.targetId = target
        parameters.flatten = true
        session = try call("Target.attachToTarget", parameters).sessionId
        _ = try call("Inspector.enable")
        _ = try call("Page.enable")
        parameters = .init()
        parameters.enabled = true
        _ = try call("Page.setLifecycleEventsEnabled", parameters)
        parameters = .init()
        (parameters.width, parameters.height) = (Double(page.width), Double(page.height))
        parameters.deviceScaleFactor = page.scale
        parameters.mobile = false
        _ = try call("Emulation.setDeviceMetricsOverride", parameters)
    }

    /// - Returns: nil when another document has taken the place of `loader`.
    private func capture(_ page: BrowserViewport, of loader: String?) throws(ImagePipelineError) -> [UInt8]? {
        var parameters = BrowserCommand.Parameters()
        parameters.format = "png"
        if page.isFullPage {
            guard let metrics = try call("Page.getLayoutMetrics", while: loader) else { return nil }
            guard let content = metrics.cssContentSize else { throw malformed }
            let longest = Double(BrowserViewport.longest) / page.scale
            let area = Double(maximumPixels) / (page.scale * page.scale)
            let width = min(max(Double(page.width), content.width.rounded(.up)), longest)
            let height = min(max(1, content.height.rounded(.up)), longest, (area / width).rounded(.down))
            guard height >= 1 else {
                throw .limitExceeded(
                    source: name, limit: .pixels, actual: Int(clampingRounded: width), allowed: maximumPixels)
            }
            parameters.captureBeyondViewport = true
            parameters.clip = .init(width: width, height: height)
        }
        guard let reply = try call("Page.captureScreenshot", parameters, while: loader) else { return nil }
        guard let text = reply.data, let data = Data(base64Encoded: text) else { throw malformed }
        return [UInt8](data)
    }

    // MARK: What prevents the drawing

    private var malformed: ImagePipelineError {
        .unreadable(source: name, reason: "the browser's answers cannot be read")
    }

    /// Why the last page that the tab was to show is not there.
    private func failure(_ text: String) -> ImagePipelineError {
        if let reason = documents.refusal { return .unsupported(source: name, reason: reason) }
        guard let failure = documents.mainURL.flatMap(access.failure) else {
            return .unreadable(source: name, reason: text)
        }
        return failure.isRefusal
            ? .unsupported(source: name, reason: failure.reason)
            : .unreadable(source: name, reason: "\(text): \(failure.reason)")
    }

    /// - Throws: When the page that is to be drawn is none.
    private func check() throws(ImagePipelineError) {
        if let url = navigation.unreachable {
            throw failure("it leads to \(WebAddress.short(url)), which cannot be loaded")
        }
        guard navigation.count <= access.policy.maximumRedirects else {
            throw .unreadable(
                source: name, reason: "it leads from page to page more than \(access.policy.maximumRedirects) times")
        }
        if let proxy, proxy.isOverrun {
            throw .limitExceeded(
                source: name, limit: .inputBytes, actual: proxy.received, allowed: PageProxy.maximumBytes)
        }
    }

    // MARK: Messages

    private func send(
        _ method: String, _ parameters: BrowserCommand.Parameters, toBrowser: Bool = false
    ) throws(ImagePipelineError) -> Int {
        lastID += 1
        let command = BrowserCommand(
            id: lastID, method: method, params: parameters, sessionId: toBrowser ? nil : session)
        guard let bytes = try? JSONEncoder().encode(command) else { throw malformed }
        do throws(ToolProcess.Failure) {
            try pipe.send(bytes, until: deadline, cancellation: cancellation)
        } catch {
            throw failure(error)
        }
        return lastID
    }

    /// Sends a command and waits for its answer.
    private func call(
        _ method: String, _ parameters: BrowserCommand.Parameters = .init()
    ) throws(ImagePipelineError) -> BrowserReply.Result {
        let id = try send(method, parameters)
        while true {
            if let result = try result(of: id, method) { return result }
        }
    }

    /// Sends a command about the document of `loader` and waits for its answer, which browsers may never give when
    /// another document takes its place.
    private func call(
        _ method: String, _ parameters: BrowserCommand.Parameters = .init(), while loader: String?
    ) throws(ImagePipelineError) -> BrowserReply.Result? {
        let id = try send(method, parameters)
        while navigation.loader == loader {
            if let result = try result(of: id, method) { return result }
        }
        return nil
    }

    /// Takes the next message.
    ///
    /// - Returns: The answer to the command `id`; nil for other messages.
    private func result(of id: Int, _ method: String) throws(ImagePipelineError) -> BrowserReply.Result? {
        let reply = try next()
        guard reply.id == id else {
            try take(reply)
            return nil
        }
        if let error = reply.error {
            throw .unreadable(source: name, reason: "the browser answers \(method): \(error.message ?? "no")")
        }
        return reply.result ?? .init()
    }

    /// Notes an event. Pages that ask something are told no, or they would wait for ever.
    private func take(_ event: BrowserReply) throws(ImagePipelineError) {
        switch event.method {
        case "Page.javascriptDialogOpening":
            var parameters = BrowserCommand.Parameters()
            parameters.accept = false
            _ = try send("Page.handleJavaScriptDialog", parameters)
        case "Fetch.requestPaused":
            guard let id = event.params?.requestId, let request = event.params?.request else { throw malformed }
            let isMain = event.params?.frameId == navigation.frame
            let isAllowed = documents.decide(
                id, url: request.url, isMain: isMain, redirectedFrom: event.params?.redirectedRequestId)
            var parameters = BrowserCommand.Parameters()
            parameters.requestId = id
            if !isAllowed { parameters.errorReason = "AccessDenied" }
            _ = try send(isAllowed ? "Fetch.continueRequest" : "Fetch.failRequest", parameters, toBrowser: true)
        case "Inspector.targetCrashed", "Target.detachedFromTarget":
            throw .unreadable(source: name, reason: "the page's process has ended")
        case let method?:
            if let parameters = event.params { navigation.take(method, parameters) }
        case nil: break
        }
    }

    /// The next message.
    private func next() throws(ImagePipelineError) -> BrowserReply {
        while true {
            if let bytes = memory.excess() {
                throw .limitExceeded(source: name, limit: .memory, actual: bytes, allowed: memory.limit)
            }
            if let message = pipe.message() {
                guard let reply = try? JSONDecoder().decode(BrowserReply.self, from: message) else { throw malformed }
                return reply
            }
            guard pipe.waitingBytes <= maximumReply else {
                throw .limitExceeded(
                    source: name, limit: .inputBytes, actual: pipe.waitingBytes, allowed: maximumReply)
            }
            do throws(ToolProcess.Failure) {
                try pipe.receive(until: min(deadline, memory.due), cancellation: cancellation)
            } catch .timedOut where .now < deadline {
                continue
            } catch {
                throw failure(error)
            }
        }
    }

    private func failure(_ failure: ToolProcess.Failure) -> ImagePipelineError {
        switch failure {
        case .ended:
            .unreadable(source: name, reason: "the browser has ended; its sandbox may not work on this system")
        case .timedOut: .timedOut(source: name)
        case .cancelled: .cancelled(source: name)
        case .system(let error): .unreadable(source: name, reason: ErrorText.nested(error, about: name))
        }
    }
}

extension Int {
    /// The nearest integer to a number from outside. Never traps.
    fileprivate init(clampingRounded value: Double) {
        self = Int(exactly: value.rounded()) ?? (value > 0 ? .max : 0)
    }
}
#endif

/// A command of the DevTools protocol. Members that are nil are not sent.
struct BrowserCommand: Encodable {
    struct Clip: Encodable {
        var x = 0.0
        var y = 0.0
        var width: Double
        var height: Double
        var scale = 1.0
    }

    struct Pattern: Encodable {
        var urlPattern: String
        var resourceType: String?
    }

    struct Parameters: Encodable {
        var url: String?
        var targetId: String?
        var flatten: Bool?
        var enabled: Bool?
        var width: Double?
        var height: Double?
        var deviceScaleFactor: Double?
        var mobile: Bool?
        var format: String?
        var captureBeyondViewport: Bool?
        var clip: Clip?
        var accept: Bool?
        var patterns: [Pattern]?
        var requestId: String?
        var errorReason: String?
        var behavior: String?
    }

    var id: Int
    var method: String
    var params: Parameters
    var sessionId: String?
}

/// An answer or event of the DevTools protocol, as far as it is looked at.
package struct BrowserReply: Decodable {
    package struct Size: Decodable {
        var width: Double
        var height: Double
    }

    package struct Result: Decodable {
        var targetId: String?
        var sessionId: String?
        var loaderId: String?
        var frameId: String?
        var errorText: String?
        var cssContentSize: Size?
        package var data: String?
    }

    struct Frame: Decodable {
        var id: String
        var parentId: String?
        var loaderId: String?
        var unreachableUrl: String?
    }

    struct Request: Decodable {
        var url: String
    }

    package struct Parameters: Decodable {
        var name: String?
        var loaderId: String?
        var frameId: String?
        var frame: Frame?
        var delay: Double?
        var requestId: String?
        var request: Request?
        var redirectedRequestId: String?
    }

    package struct Failure: Decodable {
        var message: String?
    }

    var id: Int?
    var method: String?
    package var result: Result?
    var params: Parameters?
    var error: Failure?
}
