public import VitrinePipeline

extension ImagePipeline {
    /// Executes a task on the calling thread if its image is on disk, and starts it otherwise. Looks at the disk, and so
    /// must not be called in a task, which must not block.
    ///
    /// - Returns: Whether it was executed.
    @discardableResult
    public func executeIfOnDisk(_ task: ImageTask) -> Bool {
        guard isOnDisk(task.request) else {
            start(task)
            return false
        }
        // The task tells its closures what goes wrong.
        _ = try? execute(task)
        return true
    }
}
