#if canImport(Darwin)
import Foundation
public import VitrineCore

/// Loads over HTTP with `URLSession`. It is the transport of ``NetworkLoader`` on Apple platforms.
///
/// The session is ephemeral: it stores no cookies, credentials or responses. If more than
/// ``Configuration/receiveWindow`` of a body has not been read, the transfer is suspended. The session does not report
/// IP addresses before it connects, so ``URLAccessPolicy/publicOnly`` refuses HTTP requests.
///
/// Share one loader: each has connections of its own.
public final class URLSessionLoader: HTTPTransport {
    /// The settings of a ``URLSessionLoader``.
    public struct Configuration: Sendable {
        /// The most connections to one host. The default is 10.
        public var connectionsPerHost = 10
        /// How much of a body is buffered before it is read. The default is 512 KiB.
        public var receiveWindow = ByteCount.kibibytes(512)
        /// Whether requests wait for a network connection instead of failing without one. The default is true.
        public var waitsForConnectivity = true
        /// Whether expensive networks, such as cellular ones, may be used. The default is true.
        public var allowsExpensiveNetworks = true
        /// Whether networks in Low Data Mode may be used. The default is true.
        public var allowsConstrainedNetworks = true

        /// Creates the default settings.
        public init() {}
    }

    private let session: URLSession
    private let delegate = SessionDelegate()
    private let highWater: Int

    /// Creates a loader.
    ///
    /// - Parameter configuration: The settings of the session.
    public init(_ configuration: Configuration = Configuration()) {
        let settings = URLSessionConfiguration.ephemeral
        settings.httpMaximumConnectionsPerHost = configuration.connectionsPerHost
        settings.waitsForConnectivity = configuration.waitsForConnectivity
        settings.allowsExpensiveNetworkAccess = configuration.allowsExpensiveNetworks
        settings.allowsConstrainedNetworkAccess = configuration.allowsConstrainedNetworks
        settings.requestCachePolicy = .reloadIgnoringLocalCacheData
        settings.urlCache = nil
        settings.httpCookieStorage = nil
        settings.httpShouldSetCookies = false
        settings.urlCredentialStorage = nil
        session = URLSession(configuration: settings, delegate: delegate, delegateQueue: nil)
        highWater = configuration.receiveWindow.bytes
    }

    deinit { session.finishTasksAndInvalidate() }

    public func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        let url = SourceURL.withoutCredentials(request.url.absoluteString)
        guard !Task.isCancelled else { throw .cancelled(url: url) }
        try HTTPSyntax.checkFields(of: request, at: url)
        let transfer = SessionTransfer(
            session.dataTask(with: Self.urlRequest(request)), url: url, limit: request.maximumBodySize,
            highWater: highWater)
        let body = SessionBody(transfer, loader: self)
        delegate.start(transfer, total: request.totalTimeout)
        let head = try await transfer.head()
        try head.checkLength(request.maximumBodySize, of: request.method, at: url)
        return HTTPResponse(head: head, body: ResponseBody(body, announced: head.contentLength))
    }

    private static func urlRequest(_ request: HTTPRequest) -> URLRequest {
        var result = URLRequest(url: request.url)
        result.httpMethod = request.method
        result.httpBody = request.body.map { Data($0) }
        for field in request.headers { result.addValue(field.value, forHTTPHeaderField: field.name) }
        if let range = request.range { result.setValue(range.fieldValue, forHTTPHeaderField: "Range") }
        if let validator = request.ifRange { result.setValue(validator, forHTTPHeaderField: "If-Range") }
        // By default the session requests the codings that it can decode.
        if !request.acceptsCompression { result.setValue("identity", forHTTPHeaderField: "Accept-Encoding") }
        if let idle = request.idleTimeout { result.timeoutInterval = idle / .seconds(1) }
        result.networkServiceType = request.priority < .normal ? .background : .default
        return result
    }
}

/// The body of a transfer. Its release ends the transfer.
private final class SessionBody: BodySource {
    private let transfer: SessionTransfer
    /// Keeps the session alive.
    private let loader: URLSessionLoader

    init(_ transfer: SessionTransfer, loader: URLSessionLoader) {
        self.transfer = transfer
        self.loader = loader
    }

    deinit { transfer.cancel() }

    var url: String { transfer.url }

    func next() async throws(NetworkError) -> [UInt8]? { try await transfer.next() }

    func cancel() { transfer.cancel() }
}

/// Passes the events of the session to their transfers.
private final class SessionDelegate: NSObject, URLSessionDataDelegate {
    private let transfers = Locked<[Int: SessionTransfer]>([:])

    func start(_ transfer: SessionTransfer, total: Duration?) {
        transfers.withLock { $0[transfer.task.taskIdentifier] = transfer }
        transfer.task.resume()
        guard let total else { return }
        Task { [weak transfer] in
            try? await Task.sleep(for: total)
            transfer?.end(with: .timedOut(url: transfer?.url ?? "", .total))
        }
    }

    private func transfer(of task: URLSessionTask) -> SessionTransfer? {
        transfers.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        // The redirect itself is the response.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let mayGoOn = transfer(of: dataTask)?.receive(response) ?? false
        completionHandler(mayGoOn ? .allow : .cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        transfer(of: dataTask)?.receive(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let transfer = transfers.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        transfer?.complete(error)
    }
}
#endif
