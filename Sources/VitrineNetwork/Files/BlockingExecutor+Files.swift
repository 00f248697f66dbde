import VitrineCore

extension FileError {
    /// The same error about another path: for files whose names are nobody's business.
    package func named(_ path: String) -> FileError {
        switch self {
        case .notFound: .notFound(path: path)
        case .alreadyExists: .alreadyExists(path: path)
        case .notPermitted(_, let code): .notPermitted(path: path, code: code)
        case .noSpace: .noSpace(path: path)
        case .notDurable(_, let code): .notDurable(path: path, code: code)
        case .tooLarge(_, let limit): .tooLarge(path: path, limit: limit)
        case .cancelled: .cancelled(path: path)
        case .untrusted(_, let reason): .untrusted(path: path, reason: reason)
        case .system(let operation, _, let code): .system(operation: operation, path: path, code: code)
        }
    }
}

extension BlockingExecutor {
    /// Does something to files on one of the threads.
    func onFiles<T: Sendable>(_ body: @escaping @Sendable () throws(FileError) -> T) async throws(NetworkError) -> T {
        do throws(FileError) { return try await run(body) } catch { throw .file(error) }
    }
}
