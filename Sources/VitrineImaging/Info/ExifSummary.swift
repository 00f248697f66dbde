/// When, with what and whether with a place a picture was taken, from its Exif block.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.5 and §4.6.6.
public struct ExifSummary: Sendable, Hashable {
    /// A date and a time of day on the camera's clock.
    public struct CaptureDate: Sendable, Hashable {
        public var year: Int
        public var month: Int
        public var day: Int
        public var hour: Int
        public var minute: Int
        public var second: Int
        /// Fraction of the second, from 0 to below 1.
        public var fraction: Double
        /// Seconds east of Greenwich; nil when the camera did not say.
        public var offset: Int?
    }

    /// The maker of the camera, as it writes itself.
    public var make: String?
    public var model: String?
    /// When the picture was taken; nil when unknown or not a date.
    public var captureDate: CaptureDate?
    /// Whether it says where it was taken.
    public var hasLocation = false
    public var orientation: Orientation?

    /// Reads a block such as ``ImageMetadata/exif``; what is damaged is absent, nothing is an error.
    public init(exif: [UInt8]) {
        guard let block = ExifBlock(ByteReader(ByteSource(bytes: exif, name: "Exif")), 0..<exif.count) else { return }
        let structure = block.structure
        make = structure.text(block.primary[0x010F])
        model = structure.text(block.primary[0x0110])
        orientation = block.orientation
        if let offset = structure.integer(block.primary[0x8825]), let gps = try? structure.directory(at: offset) {
            hasLocation = gps[2] != nil && gps[4] != nil  // latitude and longitude
        }
        guard let offset = structure.integer(block.primary[0x8769]), let details = try? structure.directory(at: offset)
        else {
            return
        }
        captureDate = structure.text(details[0x9003]).flatMap {
            ExifSummary.date(
                $0, fraction: structure.text(details[0x9291]), zone: structure.text(details[0x9011]))
        }
    }

    private static func date(_ text: String, fraction: String?, zone: String?) -> CaptureDate? {
        let numbers = text.split { $0 == ":" || $0 == " " }.compactMap { Int($0) }
        guard numbers.count == 6, (1...9999).contains(numbers[0]), (1...12).contains(numbers[1]),
            (1...31).contains(numbers[2]), (0...23).contains(numbers[3]), (0...59).contains(numbers[4]),
            (0...60).contains(numbers[5])
        else { return nil }
        let digits = (fraction ?? "").prefix(9)
        let part = digits.allSatisfy { ("0"..."9").contains($0) } ? Double("0." + digits) ?? 0 : 0
        return CaptureDate(
            year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
            second: numbers[5], fraction: part, offset: zone.flatMap(seconds))
    }

    /// `+02:00` as seconds.
    private static func seconds(_ zone: String) -> Int? {
        let parts = zone.dropFirst().split(separator: ":").compactMap { Int($0) }
        guard let sign = zone.first, sign == "+" || sign == "-", parts.count == 2, (0...15).contains(parts[0]),
            (0...59).contains(parts[1])
        else { return nil }
        return (parts[0] * 3600 + parts[1] * 60) * (sign == "-" ? -1 : 1)
    }
}
