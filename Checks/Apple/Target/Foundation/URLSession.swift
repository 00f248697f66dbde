// The parts of Foundation's URL loading that the background session uses, declared as Apple does.
public struct URL: Hashable, Sendable {
    public init?(string: String) { nil }
    public var absoluteString: String { "" }
    public func path(percentEncoded: Bool = true) -> String { "" }
}
public struct URLRequest: Hashable, Sendable {
    public init(url: URL) {}
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {}
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {}
}
public struct URLError: Error {
    public var downloadTaskResumeData: Data? { nil }
}
open class URLResponse: NSObject, @unchecked Sendable {
    open var url: URL? { nil }
}
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    open var statusCode: Int { 0 }
}

open class URLCache: NSObject, @unchecked Sendable {}
open class HTTPCookieStorage: NSObject, @unchecked Sendable {}
open class URLCredentialStorage: NSObject, @unchecked Sendable {}
open class NSURLRequest: NSObject, @unchecked Sendable {
    public enum CachePolicy: UInt, Sendable { case useProtocolCachePolicy, reloadIgnoringLocalCacheData }
}
open class URLSessionConfiguration: NSObject, @unchecked Sendable {
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        fatalError("a declaration")
    }
    open var sessionSendsLaunchEvents = false
    open var isDiscretionary = false
    open var requestCachePolicy = NSURLRequest.CachePolicy.useProtocolCachePolicy
    open var urlCache: URLCache?
    open var httpCookieStorage: HTTPCookieStorage?
    open var urlCredentialStorage: URLCredentialStorage?
}
open class URLSessionTask: NSObject, @unchecked Sendable {
    open var taskIdentifier: Int { 0 }
    open var taskDescription: String?
    open var priority: Float = 0
    open var response: URLResponse? { nil }
    open func resume() {}
    open func cancel() {}
}
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {}
}
open class URLSession: NSObject, @unchecked Sendable {
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
    ) {}
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {}
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { fatalError("a declaration") }
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask { fatalError("a declaration") }
}

// Apple's requirements are optional except the end of a download. They are required here, so that none is misspelt.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)
}
