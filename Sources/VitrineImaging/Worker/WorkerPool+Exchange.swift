import VitrineCore

extension WorkerPool {
    /// One request, on the worker that may have its document open if that is idle; once more on a fresh worker if the first died before it took it.
    func run<R>(
        _ request: some WorkerMessage, input: WorkerInput?, name: String, format: ImageFormat?, document: UInt64? = nil,
        cancellation: CancellationToken, prepare: (SharedMemory) throws(ImageError) -> Void, finish: (WorkerReply, SharedMemory) throws(WorkerFailure) -> R
    ) throws(ImageError) -> R {
        var isRetry = false
        while true {
            if cancellation.isCancelled { throw .cancelled(input: name) }
            let worker = try acquire(
                input: name, limits: request.limits, document: document, cancellation: cancellation)
            do throws(WorkerProcess.Failure) {
                return try attempt(
                    request, input: input?.descriptor ?? -1, document: document, on: worker, cancellation: cancellation, prepare: prepare,
                    finish: finish)
            } catch {
                if case .ended(_, hadTaken: false) = error, !isRetry {
                    isRetry = true
                    continue
                }
                throw error.imageError(input: name, format: format, isCancelled: cancellation.isCancelled)
            }
        }
    }

    /// One request on one worker, which goes back to the pool.
    private func attempt<R>(
        _ request: some WorkerMessage, input: Int32, document: UInt64?, on worker: WorkerProcess,
        cancellation: CancellationToken, prepare: (SharedMemory) throws(ImageError) -> Void, finish: (WorkerReply, SharedMemory) throws(WorkerFailure) -> R
    ) throws(WorkerProcess.Failure) -> R {
        var isReusable = false
        worker.begin(request.id)
        let registration = cancellation.onCancel { worker.interrupt(request.id) }
        defer {
            // From here on no late cancellation reaches the worker.
            worker.finish()
            cancellation.remove(registration)
            release(worker, isReusable: isReusable)
        }
        worker.document = document
        do throws(ImageError) {
            try prepare(worker.memory)
        } catch {
            isReusable = true
            throw .unprepared(error)
        }
        let reply = try worker.exchange(
            request, input: input, milliseconds: Self.milliseconds(request.limits.deadline))
        let result: R
        do throws(WorkerFailure) {
            if case .failed(let failure) = reply.outcome { throw failure }
            result = try finish(reply, worker.memory)
        } catch {
            isReusable = error != .misbehaviour && reply.memory <= recycling.maximumMemory
            throw .refused(error)
        }
        isReusable = reply.memory <= recycling.maximumMemory
        return result
    }

    /// A deadline as `poll` takes it; at least 1 ms, at most a day.
    private static func milliseconds(_ seconds: Double) -> Int32 {
        guard seconds > 0 else { return 1 }
        return Int32(max(1, min(seconds * 1_000, 86_400_000)))
    }
}
