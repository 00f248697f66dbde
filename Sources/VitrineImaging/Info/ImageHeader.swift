/// What one pass over a file's structure finds: the facts for ``ImageInfo`` and where the metadata stands.
package struct ImageHeader {
    package var info: ImageInfo
    /// Where the Exif block stands, from its byte-order mark on.
    package var exif: Range<Int>?
    /// Where the XMP packet stands, if it is stored uncompressed.
    package var xmp: Range<Int>?

    package init(info: ImageInfo) {
        self.info = info
    }

    /// Takes the profile, unless it is too large or no ICC profile; see ``ImageLimits/maximumProfileBytes``.
    package mutating func setProfile(_ profile: [UInt8]?, _ limits: ImageLimits) {
        guard let profile, info.colorProfile == nil, profile.count <= limits.maximumProfileBytes,
            ICCDescription.isProfile(profile)
        else { return }
        info.colorProfile = profile
        info.colorProfileName = ICCDescription.name(of: profile)
    }

    /// Takes the profile that stands at `range`, unless it is too large or lies outside the input.
    package mutating func setProfile(at range: Range<Int>, _ reader: ByteReader, _ limits: ImageLimits) {
        guard range.count <= limits.maximumProfileBytes else { return }
        setProfile(try? reader.bytes(range), limits)
    }

    /// Applies what the Exif block says about orientation and its thumbnail.
    package mutating func applyExif(_ reader: ByteReader, orientation: Bool) {
        guard let exif, let block = ExifBlock(reader, exif) else { return }
        if orientation, let value = block.orientation { info.orientation = value }
        if let preview = block.preview { info.embeddedPreviews.append(preview) }
    }

    /// Orders previews as ``ImageInfo/embeddedPreviews`` promises.
    package mutating func sortPreviews() {
        info.embeddedPreviews.sort { a, b in
            let (p, q) = (a.size?.pixelCount ?? 0, b.size?.pixelCount ?? 0)
            return p == q ? a.offset < b.offset : p > q
        }
    }
}

/// Reads the structure of one format, up to where it stops being worth it, never its pixels.
package protocol HeaderReading {
    /// - Throws: ``ImageError/corrupt(input:reason:)`` or ``ImageError/truncated(input:)`` when not even the size can
    ///   be had, ``ImageError/unreadable(input:reason:)`` when the system refuses. Damage behind that is passed over.
    static func read(_ reader: ByteReader, _ limits: ImageLimits) throws(ImageError) -> ImageHeader
}
