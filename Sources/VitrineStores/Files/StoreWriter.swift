import VitrineCore

/// Writes one file of a store piece by piece; it appears under its name, whole, with ``commit()``.
///
/// A writer that goes without a commit removes what it wrote. Not for use from several threads at once. All calls
/// block; ``FileStore/save(chunks:as:replacing:)`` does not.
public final class StoreWriter {
    private let writer: AtomicFileWriter
    private let name: String

    init(_ writer: AtomicFileWriter, name: String) {
        self.writer = writer
        self.name = name
    }

    /// How many bytes have been written.
    public var count: Int { writer.count }

    /// Appends bytes.
    public func write(_ bytes: [UInt8]) throws(StoreError) {
        do throws(FileError) { try writer.write(bytes) } catch { throw StoreError(error, name: name) }
    }

    /// Makes the file appear under its name.
    public func commit() throws(StoreError) {
        do throws(FileError) { try writer.commit() } catch { throw StoreError(error, name: name) }
    }

    /// Gives the file up.
    public func discard() { writer.discard() }
}
