/// What a growing prefix of a JPEG file holds: its frame header and the scans that are whole.
///
/// Each byte is looked at once, however many pieces the prefix comes in.
struct JPEGScanIndex: Sendable {
    /// The frame header, once it is there.
    private(set) var frame: JPEGFrame?
    /// Scans whose data is followed by another marker.
    private(set) var completeScans = 0
    /// How many of them it took until the DC coefficients of all components were there; nil before that.
    private(set) var scansToMeans: Int?
    /// Where the first scan's data starts.
    private(set) var firstScanOffset: Int?
    /// Where the last whole scan's data ends.
    private(set) var completeEnd = 0
    /// Whether the end of the picture has been reached.
    private(set) var isAtEnd = false
    /// Whether nothing can be made of the bytes: not a JPEG file, or a broken or unsupported header.
    private(set) var isHopeless = false
    private var offset = 0
    private var scan: JPEGScanHeader?
    private var componentsWithDC: Set<Int> = []

    /// Goes on where the last call stopped. `bytes` starts with what earlier calls were given.
    mutating func advance(over bytes: UnsafeBufferPointer<UInt8>) {
        if offset == 0 {
            guard bytes.count >= 2 else { return }
            isHopeless = bytes[0] != 0xFF || bytes[1] != JPEGMarker.startOfImage
            offset = 2
        }
        while !isAtEnd && !isHopeless {
            guard scan == nil ? readSegment(bytes) : readEntropy(bytes) else { return }
        }
    }

    /// Looks for the end of a scan's data; false when the bytes end first.
    private mutating func readEntropy(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var i = offset
        while i + 1 < bytes.count {
            if bytes[i] != 0xFF {
                i += 1
            } else if bytes[i + 1] == 0 || JPEGMarker.isRestart(bytes[i + 1]) {
                i += 2
            } else if bytes[i + 1] == 0xFF {
                i += 1
            } else {
                offset = i
                finishScan()
                return true
            }
        }
        offset = i
        return false
    }

    private mutating func finishScan() {
        guard let finished = scan else { return }
        scan = nil
        completeScans += 1
        completeEnd = offset
        if finished.isFirstDC || frame?.isProgressive == false {
            componentsWithDC.formUnion(finished.components.map(\.index))
        }
        if scansToMeans == nil, componentsWithDC.count == frame?.components.count { scansToMeans = completeScans }
    }

    /// Reads one marker segment; false when it is not whole yet.
    private mutating func readSegment(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard offset + 1 < bytes.count else { return false }
        let marker = bytes[offset + 1]
        if bytes[offset] != 0xFF || marker == 0xFF || marker == 0 {
            offset += 1
            return true
        }
        if marker == JPEGMarker.endOfImage {
            isAtEnd = true
            return true
        }
        if JPEGMarker.isStandalone(marker) {
            offset += 2
            return true
        }
        guard offset + 3 < bytes.count else { return false }
        let length = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
        guard length >= 2 else {
            isHopeless = true
            return true
        }
        guard offset + 2 + length <= bytes.count else { return false }
        let body = UnsafeBufferPointer(rebasing: bytes[(offset + 4)..<(offset + 2 + length)])
        offset += 2 + length
        if JPEGMarker.isFrame(marker) {
            readFrame(marker, body)
        } else if marker == JPEGMarker.startOfScan {
            scan = frame.flatMap { JPEGScanHeader(body, frame: $0) }
            isHopeless = scan == nil
            if firstScanOffset == nil { firstScanOffset = offset }
        }
        return true
    }

    private mutating func readFrame(_ marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) {
        guard frame == nil, let new = try? JPEGFrame(marker: marker, body) else {
            isHopeless = true
            return
        }
        frame = new
    }
}
