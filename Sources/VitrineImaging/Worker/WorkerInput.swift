import CSandbox

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A source as a descriptor that can be handed to a worker.
final class WorkerInput {
    let descriptor: Int32
    private let source: ByteSource
    private let isOwned: Bool

    /// A file's own descriptor, or a sealed copy of bytes in memory.
    init(_ source: ByteSource) throws(ImageError) {
        self.source = source
        if let descriptor = source.descriptor {
            self.descriptor = descriptor
            isOwned = false
            return
        }
        let bytes = try source.allBytes()
        var descriptor: Int32 = -1
        let code = bytes.withUnsafeBytes { csandbox_sealed_copy($0.baseAddress, $0.count, &descriptor) }
        guard code == 0 else {
            let error = SystemCallError(call: "copying the input", code: code)
            throw .workerFailed(input: source.name, reason: error.description)
        }
        self.descriptor = descriptor
        isOwned = true
    }

    deinit {
        if isOwned { close(descriptor) }
    }
}
