internal import VitrineCore

/// A job of a ``DatabaseWriter`` whatever it returns.
protocol WriterJobRunning: Sendable {
    /// Runs the job and keeps what it returned or threw, in place of an earlier outcome.
    ///
    /// - Throws: What the job threw.
    func run(_ database: Database) throws
    /// Makes an error the outcome, unless the job has failed by itself.
    func fail(_ error: any Error)
    /// Tells the outcome.
    func finish()
}

/// One job of a ``DatabaseWriter`` with its outcome so far.
final class WriterJob<Value: Sendable>: WriterJobRunning {
    private let body: @Sendable (Database) throws -> Value
    private let completion: @Sendable (Result<Value, any Error>) -> Void
    private let outcome = Locked<Result<Value, any Error>?>(nil)

    init(
        body: @escaping @Sendable (Database) throws -> Value,
        completion: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        self.body = body
        self.completion = completion
    }

    func run(_ database: Database) throws {
        let result = Result { try body(database) }
        outcome.withLock { $0 = result }
        _ = try result.get()
    }

    func fail(_ error: any Error) {
        outcome.withLock { outcome in
            if case .failure = outcome { return }
            outcome = .failure(error)
        }
    }

    func finish() {
        if let result = outcome.withLock({ $0 }) { completion(result) }
    }
}
