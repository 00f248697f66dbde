import VitrineCore

/// Says which names things in a store may have: one component of a path, in any Unicode, and with
/// bytes that are none (see `PathText`).
enum StoreName {
    /// - Parameters:
    ///   - name: Taken as it is: names that differ only in how Unicode composes their characters are two names, as
    ///     they are to the file system.
    ///   - reserved: What the store itself needs.
    static func check(_ name: String, reserved: String? = nil) throws(StoreError) {
        if let reason = fault(name, reserved) { throw .invalidName(name, reason: reason) }
    }

    /// Whether a name that was found in a directory, so is a component of a path, is none of the store's.
    static func isForeign(_ name: String, reserved: String?) -> Bool {
        if name.utf8.first == UInt8(ascii: "."), name.hasPrefix(AtomicFile.temporaryPrefix) { return true }
        guard let reserved, name.utf8.count == reserved.utf8.count else { return false }
        return name.utf8.elementsEqual(reserved.utf8)
    }

    private static func fault(_ name: String, _ reserved: String?) -> String? {
        if name.isEmpty { return "it is empty" }
        if name == "." || name == ".." { return "it means a directory" }
        if name.utf8.contains(UInt8(ascii: "/")) { return "it has a slash" }
        if name.utf8.contains(0) { return "it has a zero byte" }
        let count = PathText.byteCount(of: name)
        if count > FileName.maximumLength {
            return "it has \(count) bytes, more than \(FileName.maximumLength)"
        }
        if !PathText.isExact(name) { return "the file system would have it as another name" }
        if name.hasPrefix(AtomicFile.temporaryPrefix) { return "files being written have such names" }
        if let reserved, name.utf8.elementsEqual(reserved.utf8) { return "the store keeps something else under it" }
        return nil
    }
}
