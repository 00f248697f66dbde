#if os(Linux)
import Foundation
import Testing
import VitrineCore
import VitrineServer
@_spi(BrowserControl) import VitrineWebPages

/// A tab of a real browser that a test looks at and types into. For use from one thread.
final class TestPage {
    static let reason: Comment = "needs Chromium or Google Chrome"
    static var isAvailable: Bool { BrowserControl.installedProgram != nil }

    private static let executor = BlockingExecutor(threads: 1, name: "browser")

    /// Runs the steps of a test where they may block. Expectations belong to the test that calls this.
    static func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await Task(executorPreference: executor) { try body() }.value
    }

    struct Failure: Error { var reason: String }

    private let browser: BrowserControl
    /// Uncaught exceptions, messages of the console and reports of the browser.
    private(set) var problems: [String] = []
    /// The number of requests that the page has ended before their answers.
    private(set) var cancelled = 0
    /// The requests that the page has sent, in their order.
    private(set) var requests: [(url: String, priority: String?)] = []
    private var traced: [[String: Any]] = []
    private var isTraced = false
    private var loaded = 0
    private var bytes: [String: Int] = [:]
    /// The bytes of all answers.
    var receivedBytes: Int { bytes.values.reduce(0, +) }

    init(
        width: Int = 1280, height: Int = 800, scale: Double = 1, isDark: Bool = false, isMotionReduced: Bool = false,
        hasTouch: Bool = false
    ) throws {
        let program = try #require(BrowserControl.installedProgram)
        browser = try BrowserControl(program: program)
        browser.onEvent = { [unowned self] in took($0, $1) }
        for domain in ["Page", "Runtime", "Log", "Network"] { try call("\(domain).enable") }
        try resize(width, height, scale)
        if hasTouch { try call("Emulation.setTouchEmulationEnabled", ["enabled": true, "maxTouchPoints": 5]) }
        try call(
            "Emulation.setEmulatedMedia",
            ["features": [
                ["name": "prefers-color-scheme", "value": isDark ? "dark" : "light"],
                ["name": "prefers-reduced-motion", "value": isMotionReduced ? "reduce" : "no-preference"],
            ]])
    }

    func resize(_ width: Int, _ height: Int, _ scale: Double = 1) throws {
        try call(
            "Emulation.setDeviceMetricsOverride",
            ["width": width, "height": height, "deviceScaleFactor": scale, "mobile": false])
    }

    private func took(_ method: String, _ message: Data) {
        let object = (try? JSONSerialization.jsonObject(with: message)) as? [String: Any]
        let parameters = object?["params"] as? [String: Any] ?? [:]
        switch method {
        case "Runtime.exceptionThrown":
            problems.append("exception: \(parameters["exceptionDetails"] ?? "")")
        case "Runtime.consoleAPICalled" where ["error", "warning", "assert"].contains(parameters["type"] as? String):
            problems.append("console: \(parameters["args"] ?? "")")
        case "Log.entryAdded":
            let entry = parameters["entry"] as? [String: Any] ?? [:]
            if ["error", "warning"].contains(entry["level"] as? String) {
                problems.append("\(entry["source"] ?? ""): \(entry["text"] ?? "") \(entry["url"] ?? "")")
            }
        case "Network.loadingFailed" where parameters["canceled"] as? Bool == true: cancelled += 1
        case "Network.loadingFinished":
            bytes[parameters["requestId"] as? String ?? ""] = parameters["encodedDataLength"] as? Int ?? 0
        case "Network.requestWillBeSent":
            let request = parameters["request"] as? [String: Any] ?? [:]
            let fields = request["headers"] as? [String: String] ?? [:]
            requests.append((request["url"] as? String ?? "", fields["Priority"]))
        case "Tracing.dataCollected": traced += parameters["value"] as? [[String: Any]] ?? []
        case "Tracing.tracingComplete": isTraced = true
        case "Page.loadEventFired": loaded += 1
        default: break
        }
    }

    /// Forgets problems that the test has caused.
    func forgetProblems() { problems = [] }
    func forgetBytes() { bytes = [:] }
    func forgetRequests() { requests = [] }

    @discardableResult
    func call(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
        let answer = try browser.call(method, try JSONSerialization.data(withJSONObject: parameters))
        let object = try JSONSerialization.jsonObject(with: answer) as? [String: Any]
        return object?["result"] as? [String: Any] ?? [:]
    }

    /// Opens an address and waits for the load event.
    func open(_ url: String) throws { try loading { try call("Page.navigate", ["url": url]) } }

    /// Waits for the load event of the page that a step leads to.
    func loading(_ body: () throws -> Void) throws {
        let before = loaded
        try body()
        while loaded == before { try browser.waitForEvent() }
    }

    /// The value of an expression, after its promise.
    @discardableResult
    func evaluate(_ expression: String) throws -> Any? {
        let result = try call(
            "Runtime.evaluate", ["expression": expression, "awaitPromise": true, "returnByValue": true])
        if let details = result["exceptionDetails"] { throw Failure(reason: "\(expression): \(details)") }
        return (result["result"] as? [String: Any])?["value"]
    }

    func number(_ expression: String) throws -> Double {
        (try evaluate(expression) as? NSNumber)?.doubleValue ?? .nan
    }
    func text(_ expression: String) throws -> String { try evaluate(expression) as? String ?? "" }
    func holds(_ expression: String) throws -> Bool { try evaluate(expression) as? Bool ?? false }

    /// Waits until an expression is true, which is looked at after every change of the page and every frame.
    func wait(_ expression: String) throws {
        try evaluate("new Promise((done) => { const look = () => { if (\(expression)) done(); "
            + "else setTimeout(look, 16); }; look(); })")
    }

    /// Waits for something outside of the page, which goes on meanwhile.
    func wait(until isTrue: () throws -> Bool) throws {
        while try !isTrue() { try evaluate("new Promise((done) => setTimeout(done, 50))") }
    }

    /// Waits until all visible tiles have their pictures.
    func waitForPictures() throws {
        try wait(Self.allShown)
    }

    static let allShown = """
        (() => { const all = [...document.querySelectorAll('.tile')].filter((tile) => { \
        const box = tile.getBoundingClientRect(); return box.bottom > 0 && box.top < innerHeight; }); \
        return all.length > 0 && all.every((tile) => tile.querySelector('img.shown') \
        || tile.classList.contains('failed')); })()
        """

    /// Presses a key: `Enter`, `ArrowLeft`, or a character.
    func press(_ key: String, shift: Bool = false) throws {
        var parameters: [String: Any] = ["key": key, "modifiers": shift ? 8 : 0]
        let codes = [
            "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
            "End": 35, "PageUp": 33, "PageDown": 34, "Tab": 9, " ": 32,
        ]
        if let code = codes[key] {
            parameters["windowsVirtualKeyCode"] = code
            parameters["code"] = key == " " ? "Space" : key
        }
        if key == "Enter" { parameters["text"] = "\r" }
        if key.count == 1 { parameters["text"] = key }
        parameters["type"] = parameters["text"] == nil ? "rawKeyDown" : "keyDown"
        try call("Input.dispatchKeyEvent", parameters)
        parameters["type"] = "keyUp"
        parameters["text"] = nil
        try call("Input.dispatchKeyEvent", parameters)
    }

    func type(_ text: String) throws { try call("Input.insertText", ["text": text]) }

    func wheel(_ x: Int, _ y: Int, by delta: Int, control: Bool = false) throws {
        try call(
            "Input.dispatchMouseEvent",
            ["type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta, "modifiers": control ? 2 : 0])
    }

    /// Puts fingers onto the screen, moves them through places, and takes them away.
    func touch(_ places: [[(x: Double, y: Double)]]) throws {
        for (index, fingers) in places.enumerated() {
            let points = fingers.enumerated().map { ["x": $1.x, "y": $1.y, "id": Double($0)] }
            try call(
                "Input.dispatchTouchEvent", ["type": index == 0 ? "touchStart" : "touchMove", "touchPoints": points])
        }
        try call("Input.dispatchTouchEvent", ["type": "touchEnd", "touchPoints": [Any]()])
    }

    /// Drags with the left button.
    func drag(_ x: Double, _ y: Double, by dx: Double, _ dy: Double) throws {
        let steps: [(String, Double)] = [
            ("mousePressed", 0), ("mouseMoved", 0.5), ("mouseMoved", 1), ("mouseReleased", 1),
        ]
        for (type, part) in steps {
            try call(
                "Input.dispatchMouseEvent",
                [
                    "type": type, "x": x + dx * part, "y": y + dy * part, "button": "left", "buttons": 1,
                    "clickCount": 1,
                ])
        }
    }

    func doubleClick(_ x: Double, _ y: Double) throws {
        for count in 1...2 {
            for type in ["mousePressed", "mouseReleased"] {
                try call(
                    "Input.dispatchMouseEvent", ["type": type, "x": x, "y": y, "button": "left", "clickCount": count])
            }
        }
    }

    /// Fields of every request, for example as a proxy would add them.
    func setFields(_ fields: [String: String]) throws {
        try call("Network.setExtraHTTPHeaders", ["headers": fields])
    }

    /// Runs steps, and returns the longest task of the page in milliseconds of processor time. That does not depend on
    /// the load of the machine, as time by the clock would.
    func longestTask(_ body: () throws -> Void) throws -> Double {
        (traced, isTraced) = ([], false)
        try call("Tracing.start", ["transferMode": "ReportEvents", "traceConfig": ["includedCategories": ["toplevel"]]])
        try body()
        try call("Tracing.end")
        while !isTraced { try browser.waitForEvent() }
        func thread(_ event: [String: Any]) -> String { "\(event["pid"] ?? 0) \(event["tid"] ?? 0)" }
        let threads = Set(
            traced.filter { ($0["args"] as? [String: Any])?["name"] as? String == "CrRendererMain" }.map(thread))
        let tasks = traced.filter { event in
            (event["name"] as? String)?.hasSuffix("RunTask") == true && threads.contains(thread(event))
        }
        try #require(!tasks.isEmpty)
        return tasks.map { min($0["tdur"] as? Double ?? 0, $0["dur"] as? Double ?? 0) / 1_000 }.max() ?? 0
    }

    /// Bytes of the objects of scripts that are in use.
    func scriptBytes() throws -> Double {
        try call("HeapProfiler.collectGarbage")
        return try call("Runtime.getHeapUsage")["usedSize"] as? Double ?? .infinity
    }

    func move(_ x: Double, _ y: Double) throws {
        try call("Input.dispatchMouseEvent", ["type": "mouseMoved", "x": x, "y": y])
    }

    /// Clicks the middle of an element, once it stays where it is: sizes that arrive move the tiles.
    func click(_ selector: String) throws {
        let place = try evaluate(
            """
            (async () => { let last = ''; for (;;) { const node = document.querySelector(\(quoted(selector))); \
            node.scrollIntoView({ block: 'nearest' }); const box = node.getBoundingClientRect(); \
            const place = [box.x + box.width / 2, box.y + box.height / 2]; if (String(place) === last) return place; \
            last = String(place); await new Promise((done) => setTimeout(done, 300)); } })()
            """) as? [Double] ?? []
        try #require(place.count == 2, "\(selector)")
        for type in ["mousePressed", "mouseReleased"] {
            try call(
                "Input.dispatchMouseEvent",
                ["type": type, "x": place[0], "y": place[1], "button": "left", "clickCount": 1])
        }
    }

    private func quoted(_ text: String) -> String { JSONText.quoted(text) }

    func setOffline(_ isOffline: Bool) throws {
        try call(
            "Network.emulateNetworkConditions",
            ["offline": isOffline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1])
    }

    /// The window as a PNG file.
    func screenshot() throws -> [UInt8] {
        let result = try call("Page.captureScreenshot", ["format": "png"])
        return [UInt8](Data(base64Encoded: result["data"] as? String ?? "") ?? Data())
    }

    /// Keeps a picture of the window where a person asks for it by `VITRINE_SCREENSHOTS`, the path of a directory.
    func keepScreenshot(_ name: String) throws {
        guard let directory = ProcessInfo.processInfo.environment["VITRINE_SCREENSHOTS"] else { return }
        try Data(try screenshot()).write(to: URL(filePath: "\(directory)/\(name).png"))
    }

    /// Controls without names, pictures without texts, texts with too little contrast, wrong roles: one line each.
    ///
    /// Names as by WAI-ARIA's computation in its usual cases; contrast by WCAG 2.2, success criterion 1.4.3.
    func accessibilityProblems() throws -> [String] { try evaluate(Self.audit) as? [String] ?? ["no answer"] }

    private static let audit: String = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/accessibility.js")
        return (try? String(contentsOf: file, encoding: .utf8)) ?? "['the script cannot be read']"
    }()
}

extension TestPage {
    /// Opens the gallery of a directory, and expects that the browser reports nothing.
    static func browse(
        _ root: GalleryRoot, _ change: (inout ServerConfiguration) -> Void = { _ in }, place: String = "",
        gate: RequestGate? = nil, on make: @escaping @Sendable () throws -> TestPage = { try TestPage() },
        _ body: @escaping @Sendable (TestPage, ImageProgram) throws -> Void
    ) async throws {
        try await GalleryTests.run(root, change, gate: gate) { program in
            try await onThread {
                let page = try make()
                try page.open("http://127.0.0.1:\(program.port)/gallery/\(place)")
                try body(page, program)
                #expect(page.problems.isEmpty, "\(page.problems)")
            }
        }
    }
}

extension ImageProgram {
    /// The sum of the series of a metric whose labels contain a text.
    func metric(_ name: String, _ labels: String = "") throws -> Double {
        try Self.metric(name, labels, at: adminPort)
    }

    static func metric(_ name: String, _ labels: String, at adminPort: Int) throws -> Double {
        let client = try PlainClient(port: adminPort)
        try client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return try client.answer().body.split(separator: "\n")
            .filter { $0.hasPrefix(name + "{") || $0.hasPrefix(name + " ") }
            .filter { labels.isEmpty || $0.contains(labels) }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.reduce(0, +)
    }
}
#endif
