extension [UInt8] {
    /// `withUnsafeBytes`, with the errors of this module.
    func lend<Result>(
        _ body: (UnsafeRawBufferPointer) throws(PersistenceError) -> Result
    ) throws(PersistenceError) -> Result {
        try withUnsafeBufferPointer { bytes throws(PersistenceError) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
