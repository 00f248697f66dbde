import VitrineImaging

/// The camera, the lens, the date and the place of a photo, from its Exif block.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.5 and §4.6.6. Damaged fields are nil; damage is not an error.
package struct PhotoDetails: Sendable, Equatable {
    /// A place on Earth in degrees, positive to the north and to the east.
    package struct Place: Sendable, Equatable {
        package var latitude: Double
        package var longitude: Double
    }

    /// Maker and model.
    package private(set) var camera: String?
    package private(set) var lens: String?
    /// On the camera's clock, as ISO 8601; it ends with the offset from UTC if that is known.
    package private(set) var date: String?
    package private(set) var place: Place?

    /// Reads a block such as `ImageMetadata.exif`.
    package init(exif: [UInt8]) {
        let summary = ExifSummary(exif: exif)
        camera = Self.camera(summary)
        date = summary.captureDate.map(Self.text)
        guard let block = ExifBlock(bytes: exif) else { return }
        let structure = block.structure
        if let details = Self.directory(0x8769, of: block) { lens = structure.text(details[0xA434]) }
        if let gps = Self.directory(0x8825, of: block),
            let latitude = Self.degrees(gps[2], in: structure), latitude <= 90,
            let longitude = Self.degrees(gps[4], in: structure), longitude <= 180
        {
            place = Place(
                latitude: structure.text(gps[1]) == "S" ? -latitude : latitude,
                longitude: structure.text(gps[3]) == "W" ? -longitude : longitude)
        }
    }

    /// The details for people, each a part of a line.
    package var parts: [String] {
        var parts = [camera, lens, date.map { $0.replacing("T", with: " ") }].compactMap(\.self)
        if let place {
            let latitude = abs(place.latitude).formatted("%.5f°") + (place.latitude < 0 ? " S" : " N")
            let longitude = abs(place.longitude).formatted("%.5f°") + (place.longitude < 0 ? " W" : " E")
            parts.append("\(latitude) \(longitude)")
        }
        return parts
    }

    private static func directory(_ tag: Int, of block: ExifBlock) -> TIFFStructure.Directory? {
        block.structure.integer(block.primary[tag]).flatMap { try? block.structure.directory(at: $0) }
    }

    /// Makers repeat their name in the model, in part or in other letters: `Canon`, `Canon EOS R5`.
    private static func camera(_ summary: ExifSummary) -> String? {
        guard let model = summary.model else { return summary.make }
        guard let make = summary.make, let word = make.split(separator: " ").first,
            !model.lowercased().hasPrefix(word.lowercased())
        else { return model }
        return "\(make) \(model)"
    }

    private static func text(_ date: ExifSummary.CaptureDate) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = String(repeating: "0", count: max(0, 4 - "\(date.year)".count)) + "\(date.year)"
        let day = "\(year)-\(two(date.month))-\(two(date.day))"
        let time = "\(two(date.hour)):\(two(date.minute)):\(two(date.second))"
        guard let offset = date.offset else { return "\(day)T\(time)" }
        let minutes = abs(offset) / 60
        return "\(day)T\(time)\(offset < 0 ? "-" : "+")\(two(minutes / 60)):\(two(minutes % 60))"
    }

    /// Degrees, minutes and seconds, each a fraction.
    private static func degrees(_ field: TIFFStructure.Field?, in structure: TIFFStructure) -> Double? {
        guard let field, field.type == 5, field.count == 3, let range = structure.bytes(field) else { return nil }
        var degrees = 0.0
        for (index, part) in [1.0, 60, 3600].enumerated() {
            let at = range.lowerBound + index * 8
            guard let number = try? structure.reader.u32(at: at, bigEndian: structure.isBigEndian),
                let divisor = try? structure.reader.u32(at: at + 4, bigEndian: structure.isBigEndian)
            else { return nil }
            // Cameras write 0/0 for a part that they do not know.
            guard divisor > 0 else {
                if index == 0 { return nil }
                continue
            }
            degrees += Double(number) / Double(divisor) / part
        }
        return degrees
    }
}
