import CVitrineSandbox
import VitrineImaging

extension ByteSource {
    /// Calls `body` with the whole input in one piece of memory, for libraries that read at any place of it.
    ///
    /// - Throws: ``ImageError/empty(input:)``; ``ImageError/limitExceeded(input:limit:actual:allowed:)`` for more bytes
    ///   than ``ImageLimits/maximumInputBytes``; the errors of reading and of `body`.
    func withWholeInput<R>(
        _ limits: ImageLimits, _ body: (UnsafeRawBufferPointer) throws(ImageError) -> R
    ) throws(ImageError) -> R {
        guard count > 0 else { throw .empty(input: name) }
        guard count <= limits.maximumInputBytes else {
            throw .limitExceeded(input: name, limit: .inputBytes, actual: count, allowed: limits.maximumInputBytes)
        }
        var address: UnsafeMutableRawPointer?
        if let descriptor, csandbox_map_readonly(descriptor, count, &address) == 0 {
            defer { csandbox_unmap(address, count) }
            return try body(UnsafeRawBufferPointer(start: address, count: count))
        }
        let bytes = try allBytes()
        return try bytes.withUnsafeBytes { buffer in
            Result { () throws(ImageError) in try body(buffer) }
        }.get()
    }
}

/// The text that a C function left in a buffer.
func text(in buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
