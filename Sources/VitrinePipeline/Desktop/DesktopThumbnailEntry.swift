import VitrineImaging

/// A thumbnail file: its bytes, and its records about the original.
package struct DesktopThumbnailEntry {
    /// Larger files are no thumbnails: 1024 by 1024 pixels have 4 MB before they are compressed.
    private static let maximumCount = 16 << 20

    let bytes: [UInt8]
    private let texts: [String: String]
    private let size: PixelSize

    /// nil when there is none or it is no PNG.
    init?(path: String) {
        guard let source = try? ByteSource(.file(path)), source.count <= Self.maximumCount,
            let bytes = try? source.allBytes()
        else { return nil }
        self.init(bytes: bytes, name: path)
    }

    /// nil unless it is a PNG file.
    package init?(bytes: [UInt8], name: String) {
        let copy = ByteSource(bytes: bytes, name: name)
        guard let texts = try? PNGText.entries(of: copy), let info = try? ImageInfo(reading: copy),
            info.format == .png
        else { return nil }
        self.bytes = bytes
        self.texts = texts
        size = info.size
    }

    /// Whether it is of this version of the file. Shared ones need not say so, as they may be kept up to date in
    /// another way, but must not say otherwise.
    func isValid(for original: DesktopOriginal, isShared: Bool) -> Bool {
        if let size = texts["Thumb::Size"], Int(size) != original.count { return false }
        let (uri, modified) = (texts["Thumb::URI"], texts["Thumb::MTime"])
        guard isShared else { return uri == original.uri && modified.flatMap(Self.seconds) == original.modified }
        return uri.map(original.sharedURIs.contains) ?? true
            && modified.map { Self.seconds($0) == original.modified } ?? true
    }

    /// Whether it fills `box`, or has all pixels the file has as far as it says.
    package func isLargeEnough(for box: PixelSize) -> Bool {
        if size.width >= box.width || size.height >= box.height { return true }
        guard let width = texts["Thumb::Image::Width"].flatMap({ Int($0) }),
            let height = texts["Thumb::Image::Height"].flatMap({ Int($0) })
        else { return true }
        return max(width, height) <= size.longestSide
    }

    /// Seconds as programs write them: whole ones, a few with a fraction.
    private static func seconds(_ text: String) -> Int? {
        Int(text.prefix { $0 != "." })
    }
}
