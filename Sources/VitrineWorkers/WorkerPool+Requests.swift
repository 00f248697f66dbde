import CVitrineSandbox
import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension WorkerPool {
    /// Decodes in a worker. Blocks; never call it from an asynchronous context.
    ///
    /// - Parameters:
    ///   - source: The worker gets a small input in the shared memory, a larger file as its descriptor, and larger
    ///     bytes as a sealed copy.
    ///   - request: Its deadline begins when a worker takes the request, and counts the worker's processor time.
    ///   - decoder: The type name of the worker's decoder to use; nil for the first that reads the format.
    /// - Throws: The decoder's errors; ``ImageError/timedOut(input:)``, ``ImageError/cancelled(input:)`` (within 50
    ///   ms), and ``ImageError/workerFailed(input:reason:)`` when no helper is installed or it died.
    package func decode(
        _ source: ByteSource, _ request: DecodeRequest, decoder: String? = nil
    ) throws(ImageError) -> DecodedImage {
        var request = request
        let extra = Self.usesThreads(request) ? IdleCores.shared.claim(IdleCores.maximumThreads) : 0
        defer { IdleCores.shared.release(extra) }
        request.threads += extra
        return try decode(source, request: request, decoder: decoder)
    }

    /// Whether the format's library divides one image among threads, and the image is worth it.
    private static func usesThreads(_ request: DecodeRequest) -> Bool {
        let pixels = request.region?.size.pixelCount ?? request.info.storedSize.pixelCount
        return [.avif, .heic].contains(request.info.format) && pixels >= 2_000_000
    }

    private func decode(
        _ source: ByteSource, request: DecodeRequest, decoder: String?
    ) throws(ImageError) -> DecodedImage {
        var wire = WorkerRequest(id: nextRequest(), request)
        wire.decoder = decoder ?? ""
        let profile = request.info.samplesProfile
        if let profile, profile.count > min(request.limits.maximumProfileBytes, SharedMemory.keptPayload) {
            wire.profileCount = -1
        }
        let input = try wire.take(source)
        return try run(
            wire, input: input, name: source.name, format: request.info.format, cancellation: request.cancellation
        ) { (memory) throws(ImageError) in
            if let profile, wire.profileCount >= 0 { memory.payload.copyBytes(from: profile) }
            try wire.copyInput(source, to: memory)
        } finish: { (reply, memory) throws(WorkerFailure) in
            guard case .decoded(let shape) = reply.outcome else { throw .misbehaviour }
            defer { memory.trim(used: max(shape.end, wire.inputOffset + wire.inputCount)) }
            guard
                let image = DecodedImage(
                    shape, memory: memory, requestedProfile: wire.profileCount >= 0 ? profile : nil,
                    limits: request.limits)
            else { throw .misbehaviour }
            if let shown = image.region {
                let whole = request.info.storedSize
                guard shown.clipped(to: whole) == shown, let region = request.region,
                    shown.contains(region.clipped(to: whole) ?? region)
                else { throw .misbehaviour }
            }
            return image
        }
    }

    /// Reads the header of an image in a worker. Blocks; never call it from an asynchronous context.
    ///
    /// - Parameters:
    ///   - source: As for ``decode(_:_:decoder:)``.
    ///   - format: The format by the file's signature.
    ///   - picture: Which image of a book or a comic, from 0.
    ///   - limits: Bounds on the work.
    ///   - cancellation: Stops the work.
    /// - Throws: The reader's errors; as ``decode(_:_:decoder:)``.
    package func header(
        of source: ByteSource, format: ImageFormat, picture: Int = 0, limits: ImageLimits,
        cancellation: CancellationToken
    ) throws(ImageError) -> ImageHeader {
        var info = ImageInfo(format: format, storedSize: .zero)
        info.pictureIndex = picture
        var wire = WorkerRequest(id: nextRequest(), operation: .header, info: info, limits: limits)
        let input = try wire.take(source)
        return try run(
            wire, input: input, name: source.name, format: format, cancellation: cancellation
        ) { (memory) throws(ImageError) in
            try wire.copyInput(source, to: memory)
        } finish: { (reply, memory) throws(WorkerFailure) in
            let description = try Self.description(reply, memory)
            guard let header = ImageHeader(description, of: source, format: format, limits: limits) else {
                throw .misbehaviour
            }
            return header
        }
    }

    /// Encodes in a worker. Blocks; never call it from an asynchronous context.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``; ``ImageError/workerFailed(input:reason:)`` and other
    ///   errors of ``decode(_:_:decoder:)``.
    package func encode(
        _ image: PixelImage, as format: ImageFormat, quality: Double, isProgressive: Bool = false,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [UInt8] {
        // Encoders take straight alpha; thumbnails of translucent images are premultiplied.
        let image = image.alpha == .premultiplied ? image.converted(to: .straight) : image
        let info = ImageInfo(format: format, storedSize: image.size)
        var wire = WorkerRequest(id: nextRequest(), operation: .encode, info: info, limits: limits)
        wire.bytesPerRow = image.width * PixelImage.bytesPerPixel
        wire.alpha = image.alpha
        wire.quality = quality
        wire.isProgressive = isProgressive
        let rowBytes = wire.bytesPerRow
        return try run(wire, input: nil, name: "image", format: format, cancellation: cancellation) {
            (memory) throws(ImageError) in
            guard image.height <= memory.payload.count / rowBytes else {
                throw .encodingFailed(format: format, reason: "\(image.size) is too large for the worker")
            }
            image.withUnsafeBytes { pixels in
                for y in 0..<image.height {
                    let row = UnsafeRawBufferPointer(rebasing: pixels[(y * image.bytesPerRow)...].prefix(rowBytes))
                    UnsafeMutableRawBufferPointer(rebasing: memory.payload[(y * rowBytes)...]).copyMemory(from: row)
                }
            }
        } finish: { (reply, memory) throws(WorkerFailure) in
            guard case .encoded(let offset, let count) = reply.outcome,
                let file = memory.bytes(at: offset, count: count)
            else { throw .misbehaviour }
            memory.trim(used: max(offset + count, rowBytes * image.height))
            return file
        }
    }
}

extension WorkerPool {
    /// Starts the helper unless one is idle, and returns the parts of its sandbox. Blocks; never call it from an
    /// asynchronous context.
    ///
    /// - Throws: The errors of ``decode(_:_:decoder:)``.
    package func check() throws(ImageError) -> WorkerSandbox {
        let request = WorkerRequest(
            id: nextRequest(), operation: .ping, info: ImageInfo(format: .png, storedSize: PixelSize(1)),
            limits: .standard)
        return try run(
            request, input: nil, name: program, format: nil, cancellation: CancellationToken(), prepare: { _ in }
        ) { (reply, _) throws(WorkerFailure) in
            guard case .pong(let sandbox) = reply.outcome else { throw .misbehaviour }
            return sandbox
        }
    }

    /// Returns the helper's description of a document. Blocks; never call it from an asynchronous context.
    ///
    /// - Throws: The errors of ``decode(_:_:decoder:)``.
    package func describe(
        _ source: ByteSource, parameters: [UInt8], limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [UInt8] {
        let request = DocumentRequest(
            id: nextRequest(), operation: .describe, parameters: parameters, limits: limits)
        return try run(request, on: source, cancellation) { (reply, memory) throws(WorkerFailure) in
            try Self.description(reply, memory)
        }
    }

    /// The description in a reply, or in the shared memory if it is long.
    private static func description(_ reply: WorkerReply, _ memory: SharedMemory) throws(WorkerFailure) -> [UInt8] {
        switch reply.outcome {
        case .described(let description): return description
        case .encoded(let offset, let count) where count > WorkerProtocol.maximumDescription:
            guard let description = memory.bytes(at: offset, count: count) else { throw .misbehaviour }
            memory.trim(used: offset + count)
            return description
        default: throw .misbehaviour
        }
    }

    /// Returns one page or frame of a document, drawn by its helper. Blocks; never call it from an asynchronous
    /// context.
    ///
    /// - Throws: The errors of ``decode(_:_:decoder:)``.
    package func render(
        _ source: ByteSource, target: PixelSize?, parameters: [UInt8], limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> DecodedImage {
        let request = DocumentRequest(
            id: nextRequest(), operation: .render, target: target, parameters: parameters, limits: limits)
        return try run(request, on: source, cancellation) { (reply, memory) throws(WorkerFailure) in
            guard case .decoded(let shape) = reply.outcome else { throw .misbehaviour }
            defer { memory.trim(used: shape.end) }
            guard let image = DecodedImage(shape, memory: memory, requestedProfile: nil, limits: limits) else {
                throw .misbehaviour
            }
            return image
        }
    }

    private func run<Answer>(
        _ request: DocumentRequest, on source: ByteSource, _ cancellation: CancellationToken,
        finish: (WorkerReply, SharedMemory) throws(WorkerFailure) -> Answer
    ) throws(ImageError) -> Answer {
        try run(
            request, input: try WorkerInput(source), name: source.name, format: nil,
            document: source.documentIdentity, cancellation: cancellation, prepare: { _ in }, finish: finish)
    }
}

extension ByteSource {
    /// A number for the file and its state: equal for every source of one unchanged file; nil for bytes in memory.
    package var documentIdentity: UInt64? {
        guard let descriptor else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        let changed = status.modified
        var hash: UInt64 = 0
        for part in [
            UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino),
            UInt64(truncatingIfNeeded: status.st_size), UInt64(truncatingIfNeeded: changed.tv_sec),
            UInt64(truncatingIfNeeded: changed.tv_nsec),
        ] {
            hash = withUnsafeBytes(of: part) { StableHash.hash($0, seed: hash) }
        }
        return hash
    }
}

extension WorkerPool {
    /// Runs one request, preferably on the idle worker that has its document open.
    ///
    /// Retries once on a fresh worker if the first one died before it took the request, or crashed after it had served
    /// others. An earlier file may have damaged its memory, and a sound one must not be named for that.
    private func run<R>(
        _ request: some WorkerMessage, input: WorkerInput?, name: String, format: ImageFormat?, document: UInt64? = nil,
        cancellation: CancellationToken, prepare: (SharedMemory) throws(ImageError) -> Void,
        finish: (WorkerReply, SharedMemory) throws(WorkerFailure) -> R
    ) throws(ImageError) -> R {
        var isRetry = false
        while true {
            if cancellation.isCancelled { throw .cancelled(input: name) }
            let worker = try acquire(
                input: name, limits: request.limits, document: document, isFresh: isRetry, cancellation: cancellation)
            let hasServed = worker.served > 0
            do throws(WorkerProcess.Failure) {
                return try attempt(
                    request, input: input?.descriptor ?? -1, document: document, on: worker,
                    cancellation: cancellation, prepare: prepare, finish: finish)
            } catch {
                if case .ended(let exit, let hadTaken) = error, !isRetry, !hadTaken || exit.isCrash && hasServed {
                    isRetry = true
                    continue
                }
                throw error.imageError(input: name, format: format, isCancelled: cancellation.isCancelled)
            }
        }
    }

    /// Runs one request on one worker and gives it back to the pool.
    private func attempt<R>(
        _ request: some WorkerMessage, input: Int32, document: UInt64?, on worker: WorkerProcess,
        cancellation: CancellationToken, prepare: (SharedMemory) throws(ImageError) -> Void,
        finish: (WorkerReply, SharedMemory) throws(WorkerFailure) -> R
    ) throws(WorkerProcess.Failure) -> R {
        var isReusable = false
        worker.begin(request.id)
        let registration = cancellation.register { worker.interrupt(request.id) }
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
        // What the work has taken in this process counts, and what it takes in the worker counts here.
        let seconds = min(request.limits.deadline, Deadline.remaining(of: cancellation) ?? .infinity)
        let begun = worker.processorTime
        defer {
            if let begun, let now = worker.processorTime { Deadline.charge(now - begun, to: cancellation) }
        }
        let reply = try worker.exchange(request, input: input, seconds: seconds)
        let result: R
        do throws(WorkerFailure) {
            if case .failed(let failure) = reply.outcome { throw failure }
            result = try finish(reply, worker.memory)
        } catch {
            // What failed may have filled all of it.
            worker.memory.trim(used: .max)
            isReusable = error != .misbehaviour && !reply.isLast && reply.memory <= recycling.maximumMemory
            throw .refused(error)
        }
        isReusable = !reply.isLast && reply.memory <= recycling.maximumMemory
        return result
    }
}

extension WorkerRequest {
    /// Chooses where the worker finds the input: in the shared memory if it is small, else by a descriptor.
    fileprivate mutating func take(_ source: ByteSource) throws(ImageError) -> WorkerInput? {
        inputCount = WorkerInput.isSmall(source) ? source.count : -1
        return inputCount < 0 ? try WorkerInput(source) : nil
    }

    /// Copies a small input into the shared memory.
    fileprivate func copyInput(_ source: ByteSource, to memory: SharedMemory) throws(ImageError) {
        guard inputCount >= 0 else { return }
        let available = memory.payload[inputOffset...].prefix(inputCount)
        // A file that has shrunk meanwhile ends in zeros, which the decoder rejects.
        let target = UnsafeMutableRawBufferPointer(rebasing: available)
        let count = try source.read(into: target, at: 0)
        UnsafeMutableRawBufferPointer(rebasing: target[count...]).initializeMemory(as: UInt8.self, repeating: 0)
    }
}

/// A source with a descriptor for a worker.
private struct WorkerInput {
    /// Open as long as this value exists.
    let descriptor: Int32
    private let source: ByteSource

    /// The size of files that are faster to copy than to pass as a descriptor.
    private static let smallFile = 64 << 10
    /// The size of inputs in memory, which are copied in any case: half of the pages that a worker keeps.
    private static let smallBytes = SharedMemory.keptPayload / 2

    /// Returns whether an input goes into the shared memory.
    static func isSmall(_ source: ByteSource) -> Bool {
        source.count <= (source.descriptor == nil ? smallBytes : smallFile)
    }

    /// Opens a file's own descriptor, or a sealed copy of bytes in memory.
    init(_ source: ByteSource) throws(ImageError) {
        self.source = try source.withDescriptor()
        descriptor = self.source.descriptor ?? -1
    }
}
