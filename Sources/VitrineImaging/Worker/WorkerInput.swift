/// A source as a descriptor that can be handed to a worker.
struct WorkerInput {
    /// Open as long as this value lives.
    let descriptor: Int32
    private let source: ByteSource

    /// A file's own descriptor, or a sealed copy of bytes in memory.
    init(_ source: ByteSource) throws(ImageError) {
        self.source = try source.withDescriptor()
        descriptor = self.source.descriptor ?? -1
    }
}
