import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension WorkerPool {
    /// What a document holds, as its helper tells. Blocks; never call it from an asynchronous context.
    ///
    /// - Throws: As ``decode(_:_:decoder:)`` does.
    package func describe(
        _ source: ByteSource, parameters: [UInt8], limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws(ImageError) -> [UInt8] {
        let request = DocumentRequest(
            id: nextRequest(), operation: .describe, parameters: parameters, limits: limits)
        return try run(request, on: source, cancellation) { (reply, _) throws(WorkerFailure) in
            guard case .described(let description) = reply.outcome else { throw .misbehaviour }
            return description
        }
    }

    /// One page or frame of a document, drawn by its helper. Blocks; never call it from an asynchronous context.
    ///
    /// - Throws: As ``decode(_:_:decoder:)`` does.
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
    /// The same for the same unchanged file, whoever opened it and when; nil for bytes in memory.
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
