import VitrineCore

extension BlockingExecutor {
    /// Does something to files on one of the threads.
    func onFiles<T: Sendable>(_ body: @escaping @Sendable () throws(FileError) -> T) async throws(NetworkError) -> T {
        do throws(FileError) { return try await run(body) } catch { throw .file(error) }
    }
}
