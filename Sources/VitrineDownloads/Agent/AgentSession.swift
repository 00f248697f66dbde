import VitrineCore

/// The agent's side of one connection.
final class AgentSession: Sendable {
    private let channel: AgentChannel
    private let engine: DownloadEngine
    private let stop: @Sendable () -> Void
    private let writer = BlockingExecutor(threads: 1, name: "vitrine-write")
    /// What is being done for the client, to be ended with the connection.
    private let tasks = Locked<[Int: Task<Void, Never>]>([:])

    /// - Parameter stop: Ends the agent.
    init(_ channel: AgentChannel, _ engine: DownloadEngine, stop: @escaping @Sendable () -> Void) {
        self.channel = channel
        self.engine = engine
        self.stop = stop
    }

    /// Serves the client until it goes. Blocks.
    func run() {
        guard channel.send(AgentMessage.hello(version: AgentProtocol.version)) else { return }
        while let question = channel.receive(AgentQuestion.self) {
            tasks.withLock { tasks in
                // Cannot leave before it is there, as that takes the lock.
                tasks[question.number] = Task {
                    await self.answer(question)
                    self.tasks.withLock { $0[question.number] = nil }
                }
            }
        }
        for task in tasks.withLock({ $0 }).values { task.cancel() }
    }

    /// Tells the client that it is over, and returns when it has been sent.
    func end() async {
        await writer.run { [channel] in
            channel.send(AgentMessage.stopping)
            channel.end()
        }
    }

    private func answer(_ question: AgentQuestion) async {
        switch question.call {
        case .watch: await watch(question.number)
        case .stop:
            await say(.reply(number: question.number, .done))
            stop()
        default:
            let reply: AgentReply
            do throws(DownloadError) { reply = try await perform(question.call) } catch {
                reply = .failed(DownloadStatus.Failure(error))
            }
            await say(.reply(number: question.number, reply))
        }
    }

    private func perform(_ call: AgentCall) async throws(DownloadError) -> AgentReply {
        switch call {
        case .list: return .list(try await engine.list())
        case .start(let request, let id): return .download(try await engine.start(request, id: id))
        case .perform(let command, let id): try await engine.perform(command, on: id)
        case .set(let limits): try await engine.set(limits)
        case .settled: try await engine.settled()
        case .info: return .info(DownloadAgent.Info(engine.board.snapshot.statuses))
        case .watch, .stop: break
        }
        return .done
    }

    /// Tells how everything is, and then what changes, as fast as the client reads.
    private func watch(_ number: Int) async {
        // What cannot be opened is told by questions that need it.
        try? await engine.open()
        let (statuses, version) = engine.board.snapshot
        await say(.snapshot(statuses))
        await say(.reply(number: number, .done))
        var seen = version
        while let news = await engine.board.next(after: seen, of: nil) {
            seen = news.version
            await say(news.status.map { .status($0) } ?? .removed(id: news.id, last: news.removedCompletion))
        }
    }

    private func say(_ message: AgentMessage) async {
        await writer.run { [channel] in
            if !channel.send(message) { channel.end() }
        }
    }
}
