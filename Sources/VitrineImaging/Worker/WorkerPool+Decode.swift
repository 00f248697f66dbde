import CVitrineSandbox
import VitrineCore

extension WorkerPool {
    /// Decodes in a worker. Blocks; never call it from an asynchronous context.
    ///
    /// - Parameters:
    ///   - source: What is small is handed over in the shared memory; a larger file as its descriptor, larger bytes as
    ///     a sealed copy.
    ///   - request: Its deadline begins when a worker takes the request.
    ///   - decoder: The type name of the worker's decoder to use; nil for the first that reads the format.
    /// - Throws: What the decoder throws; ``ImageError/timedOut(input:)``, ``ImageError/cancelled(input:)`` (within
    ///   50 ms), and ``ImageError/workerFailed(input:reason:)`` when there is no helper or it died.
    public func decode(
        _ source: ByteSource, _ request: DecodeRequest, decoder: String? = nil
    ) throws(ImageError) -> DecodedImage {
        var wire = WorkerRequest(id: nextRequest(), request)
        wire.decoder = decoder ?? ""
        let profile = request.info.colorProfile
        if let profile, profile.count > min(request.limits.maximumProfileBytes, WorkerProtocol.keptPayload) {
            wire.profileCount = -1
        }
        wire.inputCount = WorkerInput.isSmall(source) ? source.count : -1
        let input = wire.inputCount < 0 ? try WorkerInput(source) : nil
        return try run(
            wire, input: input, name: source.name, format: request.info.format, cancellation: request.cancellation
        ) { (memory) throws(ImageError) in
            if let profile, wire.profileCount >= 0 { memory.payload.copyBytes(from: profile) }
            guard wire.inputCount >= 0 else { return }
            let room = memory.payload[wire.inputOffset...].prefix(wire.inputCount)
            // A file that has shrunk meanwhile ends in zeros, for the decoder to refuse.
            let target = UnsafeMutableRawBufferPointer(rebasing: room)
            let count = try source.read(into: target, at: 0)
            UnsafeMutableRawBufferPointer(rebasing: target[count...]).initializeMemory(as: UInt8.self, repeating: 0)
        } finish: { (reply, memory) throws(WorkerFailure) in
            guard case .decoded(let shape) = reply.outcome else { throw .misbehaviour }
            defer { memory.trim(used: shape.end) }
            guard
                let image = DecodedImage(
                    shape, memory: memory, requestedProfile: wire.profileCount >= 0 ? profile : nil,
                    limits: request.limits)
            else { throw .misbehaviour }
            return image
        }
    }

    /// Encodes in a worker. Blocks; never call it from an asynchronous context.
    ///
    /// - Throws: ``ImageError/encodingFailed(format:reason:)``; ``ImageError/workerFailed(input:reason:)`` and others
    ///   as ``decode(_:_:decoder:)`` does.
    public func encode(
        _ image: Image, as format: ImageFormat, quality: Double, isProgressive: Bool = false,
        limits: ImageLimits = .standard, cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [UInt8] {
        let info = ImageInfo(format: format, storedSize: image.size)
        var wire = WorkerRequest(id: nextRequest(), operation: .encode, info: info, limits: limits)
        wire.bytesPerRow = image.width * Image.bytesPerPixel
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
            guard case .encoded(let offset, let count) = reply.outcome, let file = memory.bytes(at: offset, count: count)
            else { throw .misbehaviour }
            memory.trim(used: max(offset + count, rowBytes * image.height))
            return file
        }
    }
}
