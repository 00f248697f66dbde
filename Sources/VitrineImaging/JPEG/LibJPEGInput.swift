#if SystemCodecs
import CVitrineJPEG
import VitrineCore

/// What the callbacks of the shim read from, ask, and leave their error in.
///
/// Not sendable: lives in one decode, on one thread.
final class LibJPEGInput {
    let source: ByteSource
    let cancellation: CancellationToken
    /// What a failed read threw; the shim itself only knows that it failed.
    private(set) var readError: ImageError?

    init(_ source: ByteSource, _ cancellation: CancellationToken) {
        self.source = source
        self.cancellation = cancellation
    }

    private func read(_ buffer: UnsafeMutableRawPointer, _ count: Int, at offset: Int) -> Int {
        guard offset >= 0 else { return 0 }
        do throws(ImageError) {
            return try source.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: count), at: offset)
        } catch {
            readError = error
            return -1
        }
    }

    /// A decoder of the shim that calls back here; nil when there is no memory. `self` must outlive it.
    func makeDecoder() -> OpaquePointer? {
        cjpeg_decoder_create(
            { context, buffer, count, offset in
                guard let context, let buffer else { return -1 }
                let input = Unmanaged<LibJPEGInput>.fromOpaque(context).takeUnretainedValue()
                return input.read(buffer, count, at: Int(truncatingIfNeeded: offset))
            },
            { context in
                guard let context else { return 0 }
                return Unmanaged<LibJPEGInput>.fromOpaque(context).takeUnretainedValue().cancellation.isCancelled
                    ? 1 : 0
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    /// The error a status of the shim stands for.
    func error(_ status: cjpeg_status, _ message: String, _ limits: ImageLimits, needed: UInt64) -> ImageError {
        let name = source.name
        switch status {
        case CJPEG_CANCELLED: return .cancelled(input: name)
        case CJPEG_READ: return readError ?? .unreadable(input: name, reason: "read error")
        case CJPEG_MEMORY:
            return .limitExceeded(
                input: name, limit: .memory, actual: Int(clamping: needed), allowed: limits.maximumCoefficientBytes)
        case CJPEG_SCANS:
            return .corrupt(input: name, reason: "more than \(LibJPEGDecoder.maximumScans) scans")
        case CJPEG_UNSUPPORTED:
            return .unsupported(input: name, reason: message.isEmpty ? "a rare variety of JPEG" : message)
        default: return .corrupt(input: name, reason: message.isEmpty ? "not decodable" : message)
        }
    }
}
#endif
