import Foundation
import FoundationNetworking
import VitrineCore

@testable import VitrineDownloads

/// A background session whose tasks a test controls. It outlives a simulated run of the program. The next run sets
/// another inbox.
final class FakeSession: BackgroundSession {
    struct NoSuchTask: Error {
        let number: Int
    }

    private struct State: Sendable {
        var tasks: [FakeTask] = []
        var count = 0
    }

    private let state = Locked(State())

    func tasks() async -> [any BackgroundTask] { state.withLock { $0.tasks } }

    func task(with request: URLRequest) -> any BackgroundTask { add(request.url, nil) }

    func task(resuming data: Data) -> any BackgroundTask { add(nil, String(decoding: data, as: UTF8.self)) }

    /// A task of an earlier run of the program.
    @discardableResult
    func add(_ url: URL?, _ resumedFrom: String?, id: String? = nil) -> FakeTask {
        state.withLock { state in
            state.count += 1
            let task = FakeTask(number: state.count, url: url, resumedFrom: resumedFrom) { [weak self] number in
                self?.state.withLock { $0.tasks.removeAll { $0.taskIdentifier == number } }
            }
            task.taskDescription = id
            state.tasks.append(task)
            return task
        }
    }

    /// The number of tasks created.
    var count: Int { state.withLock { $0.count } }

    /// Returns the task with a number, from 1, after it was started.
    func task(_ number: Int) async throws -> FakeTask {
        for _ in 0..<600_000 {
            let task = state.withLock { $0.tasks.first { $0.taskIdentifier == number } }
            if let task, task.isBegun { return task }
            try await Task.sleep(for: .milliseconds(1))
        }
        throw NoSuchTask(number: number)
    }
}

final class FakeTask: BackgroundTask {
    private struct State: Sendable {
        var description: String?
        var priority: Float = 0.5
        var isBegun = false
        var resumeData: Data?
    }

    let taskIdentifier: Int
    let url: URL?
    let resumedFrom: String?
    private let state = Locked(State())
    private let end: @Sendable (Int) -> Void

    init(number: Int, url: URL?, resumedFrom: String?, end: @escaping @Sendable (Int) -> Void) {
        taskIdentifier = number
        self.url = url
        self.resumedFrom = resumedFrom
        self.end = end
    }

    var taskDescription: String? {
        get { state.withLock { $0.description } }
        set { state.withLock { $0.description = newValue } }
    }
    var priority: Float {
        get { state.withLock { $0.priority } }
        set { state.withLock { $0.priority = newValue } }
    }
    var isBegun: Bool { state.withLock { $0.isBegun } }

    func resume() { state.withLock { $0.isBegun = true } }

    /// The resume data that a stop returns.
    func keep(_ text: String) { state.withLock { $0.resumeData = Data(text.utf8) } }

    func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        end(taskIdentifier)
        completionHandler(state.withLock { $0.resumeData })
    }

    // MARK: Reports of the session

    /// Reports a finished file.
    func finish(_ bytes: [UInt8], _ inbox: TransferInbox, status: Int = 200, fields: [String: String] = [:]) throws {
        let location = FileManager.default.temporaryDirectory.appending(path: "vitrine-\(UUID().uuidString)")
        try Data(bytes).write(to: location)
        // Removed after the call, as the system does.
        defer { try? FileManager.default.removeItem(at: location) }
        let address = url ?? URL(filePath: "/resumed")
        let response = HTTPURLResponse(url: address, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        inbox.finished(self, at: location, response)
        end(taskIdentifier)
        inbox.completed(self, nil, resumeData: nil)
    }

    /// Reports a failure.
    func fail(_ code: URLError.Code, _ inbox: TransferInbox, resumeData: String? = nil) {
        end(taskIdentifier)
        inbox.completed(self, URLError(code), resumeData: resumeData.map { Data($0.utf8) })
    }
}
