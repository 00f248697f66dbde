import VitrineCore
import VitrineImageCore

/// The parameters of a request for a frame of an animation, to ``AnimationRenderer`` in a worker.
package struct FrameParameters: Sendable, Hashable {
    /// The frame, from 0.
    package var frame: Int
    /// The type name of the worker's decoder to use; empty for the first that reads the format.
    package var decoder = ""

    /// `FRMS`, which tells the parameters from those of other documents.
    private static let magic: UInt32 = 0x534D_5246

    package init(frame: Int) { self.frame = frame }

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(Self.magic)
        wire.write(frame)
        wire.write(decoder)
        return wire.bytes
    }

    /// Reads the bytes of ``encoded()``; nil for other bytes.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        let isMarked = wire.integer(UInt32.self) == Self.magic
        frame = wire.int()
        decoder = wire.text()
        guard isMarked, wire.isComplete, frame >= 0 else { return nil }
    }
}

/// The frames of an animation that a worker decodes. The worker composes a frame when its samples are asked for.
final class WorkerFrames: FrameDecoding {
    private let source: ByteSource
    private let request: DecodeRequest
    private let pool: WorkerPool
    private let decoder: String?
    private var index = -1

    init(_ source: ByteSource, _ request: DecodeRequest, pool: WorkerPool, decoder: String?) {
        self.source = source
        self.request = request
        self.pool = pool
        self.decoder = decoder
    }

    func advance(_ cancellation: CancellationToken) -> Bool {
        guard index + 1 < request.info.frameCount else { return false }
        index += 1
        return true
    }

    func samples(_ cancellation: CancellationToken) throws(ImageError) -> DecodedImage {
        var parameters = FrameParameters(frame: index)
        parameters.decoder = decoder ?? ""
        return try pool.render(
            source, target: request.target, parameters: parameters.encoded(), limits: request.limits,
            cancellation: cancellation)
    }
}

/// Decodes frames of animations in a worker. It keeps the decoder of the last file open, so that the next frame costs
/// its own data only.
package final class AnimationRenderer {
    private struct Opened {
        let file: UInt64?
        let target: PixelSize?
        let decoder: String
        let frames: any FrameDecoding
        /// The frame after the one composed last.
        var next = 0
    }

    private let codecs: Codecs
    private var opened: Opened?

    package init(_ codecs: Codecs) { self.codecs = codecs }

    /// Returns the samples of a frame, at the target of the request or above.
    ///
    /// - Throws: ``ImageError``.
    package func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage {
        guard let parameters = FrameParameters(request.parameters), parameters.frame < request.limits.maximumFrames
        else { throw .invalidRequest(reason: "an unknown frame") }
        let token = CancellationToken()
        do throws(ImageError) {
            let file = source.documentIdentity
            var session: Opened
            if let opened, file != nil, opened.file == file, opened.target == request.target,
                opened.decoder == parameters.decoder, opened.next <= parameters.frame + 1
            {
                session = opened
            } else {
                opened = nil
                session = Opened(
                    file: file, target: request.target, decoder: parameters.decoder,
                    frames: try open(source, request: request, parameters: parameters))
            }
            while session.next <= parameters.frame {
                guard try session.frames.advance(token) else { throw .truncated(input: source.name) }
                session.next += 1
            }
            opened = session
            return try session.frames.samples(token)
        } catch {
            opened = nil
            throw error
        }
    }

    private func open(
        _ source: ByteSource, request: DocumentRequest, parameters: FrameParameters
    ) throws(ImageError) -> any FrameDecoding {
        let info = try codecs.header(ofPictureIn: ByteReader(source), request.limits).info
        try request.limits.check(info, source: source)
        var decoders = codecs.decoders(for: info.format)
        if !parameters.decoder.isEmpty {
            decoders = decoders.filter { parameters.decoder == String(describing: type(of: $0)) }
        }
        let decode = DecodeRequest(info: info, target: request.target, limits: request.limits)
        return try decoders.frames(of: source, decode)
    }
}
