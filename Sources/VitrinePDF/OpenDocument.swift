import CVitrinePoppler
import CVitrineSandbox
import VitrineHelperProtocol
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A document that poppler has open, on its mapped bytes. It is closed when the object is released.
///
/// For one thread. A file that shrinks while it is mapped ends the helper with SIGBUS, which the client reports.
final class OpenDocument {
    let handle: OpaquePointer
    /// Bytes mapped.
    let byteCount: Int
    private let address: UnsafeMutableRawPointer
    /// Read when the first size is wanted.
    private lazy var userUnits = UserUnits(UnsafeRawBufferPointer(start: address, count: byteCount))

    /// - Throws: A ``PDFFailure``, ``ImageError/empty(input:)``, ``ImageError/corrupt(input:reason:)``,
    ///   ``ImageError/limitExceeded(input:limit:actual:allowed:)``.
    init(_ source: ByteSource, password: String?, limits: ImageLimits) throws(ImageError) {
        guard source.count > 0 else { throw .empty(input: source.name) }
        guard source.count <= limits.maximumInputBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: limits.maximumInputBytes)
        }
        guard let descriptor = source.descriptor else {
            throw .unreadable(input: source.name, reason: "the request has no descriptor")
        }
        var mapped: UnsafeMutableRawPointer?
        let code = csandbox_map_readonly(descriptor, source.count, &mapped)
        guard code == 0, let mapped else {
            throw .unreadable(input: source.name, reason: "it cannot be mapped: \(String(cString: strerror(code)))")
        }
        var opened: OpaquePointer?
        let status =
            if let password {
                password.withCString { cpoppler_open(mapped, source.count, $0, &opened) }
            } else {
                cpoppler_open(mapped, source.count, nil, &opened)
            }
        guard status == CPOPPLER_OK, let opened else {
            defer { csandbox_unmap(mapped, source.count) }
            throw Self.error(status, UnsafeRawBufferPointer(start: mapped, count: source.count), password: password)
        }
        handle = opened
        address = mapped
        byteCount = source.count
    }

    deinit {
        cpoppler_close(handle)
        csandbox_unmap(address, byteCount)
    }

    var pageCount: Int { max(0, Int(cpoppler_page_count(handle))) }

    /// Whether the document needs a password.
    var needsPassword: Bool { cpoppler_needs_password(handle) }

    /// The title, at most 1,000 bytes of UTF-8; empty for none.
    var title: String {
        var text = [CChar](repeating: 0, count: 1_001)
        guard cpoppler_title(handle, &text, text.count) else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Returns width and height in points of page `number`, from 1, with its user unit counted in; nil for a page that
    /// is unreadable or empty.
    func pageSize(_ number: Int) -> PointSize? {
        guard let index = Int32(exactly: number - 1) else { return nil }
        var size = PointSize(width: 0, height: 0)
        guard cpoppler_page_size(handle, index, &size.width, &size.height) == CPOPPLER_OK,
            size.width.isFinite, size.height.isFinite, size.width > 0, size.height > 0
        else { return nil }
        let unit = userUnits[number]
        return PointSize(width: size.width * unit, height: size.height * unit)
    }

    /// Returns the size of a page without its user unit.
    func unscaled(_ size: PointSize, ofPage number: Int) -> PointSize {
        PointSize(width: size.width / userUnits[number], height: size.height / userUnits[number])
    }

    private static func error(
        _ status: cpoppler_status, _ bytes: UnsafeRawBufferPointer, password: String?
    ) -> ImageError {
        if status == CPOPPLER_ENCRYPTED { return (password == nil ? PDFFailure.encrypted : .wrongPassword).error }
        return hasHeader(bytes)
            ? .corrupt(input: "input", reason: "its objects cannot be read") : PDFFailure.notAPDF.error
    }

    /// Returns whether `%PDF-` stands within the first 1,024 bytes, where readers accept it (ISO 32000-1, annex C, and
    /// the implementation notes of PDF Reference 1.7, H.3, note 13).
    private static func hasHeader(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let mark = Array("%PDF-".utf8)
        let end = min(bytes.count, 1_024) - mark.count
        guard end >= 0 else { return false }
        return (0...end).contains { start in mark.indices.allSatisfy { bytes[start + $0] == mark[$0] } }
    }
}

/// The documents of the last requests, kept open for the next ones.
struct OpenDocuments {
    private struct Entry {
        var file: UInt64
        var password: String?
        var document: OpenDocument
    }

    /// The most documents kept open.
    static let capacity = 4
    /// The most bytes of documents kept open, beside the current one: 256 MB.
    static let byteCapacity = 256 << 20

    /// The most recently used last.
    private var entries: [Entry] = []
    /// Documents opened so far.
    private(set) var opened = 0

    /// Returns the document in `source`, and opens it if necessary.
    ///
    /// - Throws: The errors of ``OpenDocument``.
    mutating func document(
        _ source: ByteSource, password: String?, limits: ImageLimits
    ) throws(ImageError) -> OpenDocument {
        let file = source.documentIdentity
        if let file, let index = entries.firstIndex(where: { $0.file == file && $0.password == password }) {
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.document
        }
        evictDocuments(for: source.count)
        let document = try OpenDocument(source, password: password, limits: limits)
        opened += 1
        if let file { entries.append(Entry(file: file, password: password, document: document)) }
        return document
    }

    private mutating func evictDocuments(for count: Int) {
        var bytes = entries.reduce(count) { $0 + $1.document.byteCount }
        while !entries.isEmpty, entries.count >= Self.capacity || bytes > Self.byteCapacity {
            bytes -= entries.removeFirst().document.byteCount
        }
    }
}
