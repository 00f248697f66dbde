// The parts of this module that its sources for Apple's platforms use.
import Foundation
public import VitrineCore
public import VitrineNetwork

public enum DownloadError: Error {
    case network(NetworkError)
    case file(FileError)
    case cancelled
}

struct DownloadRequest: Sendable {
    var mirrors: [URL]
    var headers: HTTPHeaders
    var priority: RequestPriority
}

struct DownloadStatus: Sendable {
    enum State: Sendable, Hashable {
        case completed, cancelled
        var isSettled: Bool { false }
    }
    var state: State
    var path: String
}

struct DownloadRecord: Sendable {
    let id: String
    var request: DownloadRequest
    var status: DownloadStatus
    var url: URL
}

protocol DownloadBackend: AnyObject, Sendable {}

final class DownloadEngine: DownloadBackend {
    let carrier: (any DownloadCarrier)? = nil
    let log = Log.logger("downloads")
    func finish(_ ids: Set<String>) async {}
    func leavesAlone(_ id: String) -> Bool { false }
    static func onFiles<T: Sendable>(
        _ body: @escaping @Sendable () throws(FileError) -> T
    ) async throws(DownloadError) -> T { fatalError("a declaration") }
}

struct DownloadRun: Sendable {
    let engine: DownloadEngine
    let record: DownloadRecord
    func watched<Value: Sendable>(
        _ progress: TransferProgress, _ transfer: @escaping @Sendable () async -> Result<Value, NetworkError>
    ) async throws(DownloadError) -> Value { fatalError("a declaration") }
}

final class BackendLease: Sendable {
    let backend: any DownloadBackend = DownloadEngine()
}

public final class Download: Sendable {}

public final class DownloadManager: Sendable {
    public struct Configuration: Sendable {
        public var identifier: String
        public var journalDirectory: String
    }
    public let configuration: Configuration
    let lease = BackendLease()
    init(_ configuration: Configuration) { self.configuration = configuration }

    @discardableResult
    public func restore() async throws(DownloadError) -> [Download] { [] }
}
