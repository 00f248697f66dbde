import CVitrineSandbox

extension ByteSource {
    /// The same bytes as a descriptor: a file itself, or a sealed copy of bytes in memory, which is the same document
    /// (``documentIdentity``) to a worker whenever it is handed over.
    ///
    /// - Throws: ``ImageError/workerFailed(input:reason:)`` when there is no room for a copy.
    package func withDescriptor() throws(ImageError) -> ByteSource {
        guard descriptor == nil else { return self }
        let bytes = try allBytes()
        var copy: Int32 = -1
        let code = bytes.withUnsafeBytes { csandbox_sealed_copy($0.baseAddress, $0.count, &copy) }
        guard code == 0 else {
            let error = SystemCallError(call: "copying the input", code: code)
            throw .workerFailed(input: name, reason: error.description)
        }
        return try ByteSource(descriptor: copy, name: name, owned: true)
    }
}
