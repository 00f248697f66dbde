import VitrineCore

/// What an import or export does: something with one name after the other.
struct TransferPlan: Sendable {
    /// Which names, found when the first is asked for.
    var names: @Sendable () throws(StoreError) -> [String]
    /// What is done with each.
    var body: @Sendable (String) throws(StoreError) -> Void

    /// The regular files directly in a directory whose names do not begin with a dot, by name.
    static func visibleFiles(in directory: String) throws(StoreError) -> [String] {
        do throws(FileError) {
            return try Directory.names(ofFilesIn: directory).filter { $0.utf8.first != UInt8(ascii: ".") }
        } catch {
            throw .file(error)
        }
    }

    /// Does it on this thread, until a step says false.
    func run(_ step: (ExportProgress) -> Bool) throws(StoreError) {
        var progress = Progress(names: try names())
        while let done = progress.next(body) {
            guard step(done) else { return }
        }
    }

    /// Does it on threads that may block, as far as somebody asks for the next step.
    func steps(on executor: BlockingExecutor) -> AsyncThrowingStream<ExportProgress, any Error> {
        let progress = Locked<Progress?>(nil)
        return AsyncThrowingStream {
            try await executor.run { () throws(StoreError) in
                let known = progress.withLock { $0 }
                var state = if let known { known } else { Progress(names: try names()) }
                let step = state.next(body)
                progress.withLock { $0 = state }
                return step
            }
        }
    }

    private struct Progress {
        let names: [String]
        var done = 0

        mutating func next(_ body: (String) throws(StoreError) -> Void) -> ExportProgress? {
            guard done < names.count else { return nil }
            let name = names[done]
            var failure: StoreError?
            do throws(StoreError) { try body(name) } catch { failure = error }
            done += 1
            return ExportProgress(name: name, done: done, total: names.count, failure: failure)
        }
    }
}
