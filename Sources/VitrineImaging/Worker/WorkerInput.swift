/// A source as a descriptor that can be handed to a worker.
struct WorkerInput {
    /// Open as long as this value lives.
    let descriptor: Int32
    private let source: ByteSource

    /// Bytes of a file that cost less to copy than its descriptor to hand over.
    private static let smallFile = 64 << 10
    /// Bytes in memory, of which a copy is made in any case.
    private static let smallBytes = 1 << 20

    /// Whether an input is better copied into the shared memory.
    static func isSmall(_ source: ByteSource) -> Bool {
        source.count <= (source.descriptor == nil ? smallBytes : smallFile)
    }

    /// A file's own descriptor, or a sealed copy of bytes in memory.
    init(_ source: ByteSource) throws(ImageError) {
        self.source = try source.withDescriptor()
        descriptor = self.source.descriptor ?? -1
    }
}
