// The parts of Foundation that exist only on Apple's systems.
@_exported import Foundation
import FoundationNetworking

public enum NSItemProviderRepresentationVisibility: Int, Sendable { case all }

public final class NSItemProvider: NSObject, @unchecked Sendable {
    public typealias Loading = @Sendable (@escaping @Sendable (Data?, (any Error)?) -> Void) -> Progress?

    public var suggestedName: String?
    private var loads: [(type: String, load: Loading)] = []

    public func registerDataRepresentation(
        forTypeIdentifier type: String, visibility: NSItemProviderRepresentationVisibility,
        loadHandler: @escaping Loading
    ) {
        loads.append((type, loadHandler))
    }

    public var registeredTypeIdentifiers: [String] { loads.map(\.type) }

    @discardableResult
    public func loadDataRepresentation(
        forTypeIdentifier type: String, completionHandler: @escaping @Sendable (Data?, (any Error)?) -> Void
    ) -> Progress {
        loads.first { $0.type == type }?.load(completionHandler) ?? Progress(totalUnitCount: 1)
    }
}

extension ProcessInfo {
    /// Runs on a thread of its own, as the system does. The time never expires.
    public func performExpiringActivity(withReason reason: String, using body: @escaping @Sendable (Bool) -> Void) {
        Thread.detachNewThread { body(false) }
    }
}

extension URLError {
    public var downloadTaskResumeData: Data? { userInfo["NSURLSessionDownloadTaskResumeData"] as? Data }
}
