import VitrineImageCore

extension ImageInfo {
    /// The most previews that are sent.
    private static let maximumPreviews = 64

    /// Writes all but the profile, which is too large for a packet.
    func write(to wire: inout WireWriter) {
        wire.write(format.rawValue)
        wire.write(storedSize.width)
        wire.write(storedSize.height)
        wire.write(UInt8(orientation.rawValue))
        wire.write(hasAlpha)
        wire.write(colorModel.rawValue)
        wire.write(bitDepth)
        wire.write(colorProfileName != nil)
        wire.write(colorProfileName ?? "")
        wire.write(codedColors?.primaries ?? -1)
        wire.write(codedColors?.transfer ?? -1)
        wire.write(codedColors?.precedesProfile ?? false)
        wire.write(contentLight?.maximum ?? -1)
        wire.write(contentLight?.average ?? -1)
        wire.write(frameCount)
        wire.write(duration ?? -1)
        wire.write(loopCount ?? -1)
        wire.write(isProgressive)
        wire.write(pictureIndex)
        let previews = embeddedPreviews.prefix(Self.maximumPreviews)
        wire.write(UInt8(previews.count))
        for preview in previews {
            for number in [preview.offset, preview.count, preview.size?.width ?? 0, preview.size?.height ?? 0] {
                wire.write(number)
            }
        }
    }

    init(from wire: inout WireReader) {
        // Registered codecs do not run in workers.
        let format = ImageFormat(known: wire.text())
        if format == nil { wire.invalidate() }
        self.init(format: format ?? .jpeg, storedSize: PixelSize(width: wire.int(), height: wire.int()))
        orientation = Orientation(rawValue: Int(wire.integer(UInt8.self))) ?? .up
        hasAlpha = wire.bool()
        colorModel = ColorModel(rawValue: wire.text()) ?? .other
        bitDepth = wire.int()
        let (hasName, name) = (wire.bool(), wire.text())
        if hasName { colorProfileName = name }
        var colors = CodedColors(primaries: wire.int(), transfer: wire.int())
        colors.precedesProfile = wire.bool()
        if colors.primaries >= 0 && colors.transfer >= 0 { codedColors = colors }
        let light = ContentLight(maximum: wire.double(), average: wire.double())
        if light.maximum >= 0 && light.average >= 0 { contentLight = light }
        frameCount = wire.int()
        let (duration, loops) = (wire.double(), wire.int())
        self.duration = duration >= 0 ? duration : nil
        loopCount = loops >= 0 ? loops : nil
        isProgressive = wire.bool()
        pictureIndex = wire.int()
        let previews = wire.integer(UInt8.self)
        if previews > Self.maximumPreviews { wire.invalidate() }
        for _ in 0..<previews where wire.isValid {
            let (offset, count) = (wire.int(), wire.int())
            let size = PixelSize(width: wire.int(), height: wire.int())
            embeddedPreviews.append(EmbeddedPreview(offset: offset, count: count, size: size.isEmpty ? nil : size))
        }
    }
}

extension ImageHeader {
    /// No header of a format holds larger numbers, so that no caller computes with them.
    package static let maximumNumber = Int(UInt32.max)

    /// The description that a worker sends.
    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        info.write(to: &wire)
        wire.write(info.colorProfile ?? [])
        for range in [exif, xmp] {
            wire.write(range?.lowerBound ?? -1)
            wire.write(range?.upperBound ?? -1)
        }
        wire.write(convertedExif ?? [])
        wire.write(UInt32(truncatingIfNeeded: frameSeconds.count))
        for seconds in frameSeconds { wire.write(seconds) }
        return wire.bytes
    }

    /// Reads ``encoded()``; nil for bytes that no header of the input can have.
    package init?(_ bytes: [UInt8], of source: ByteSource, format: ImageFormat, limits: ImageLimits) {
        var wire = WireReader(bytes)
        self.init(info: ImageInfo(from: &wire))
        let profile = wire.byteArray()
        func range() -> Range<Int>? {
            let (start, end) = (wire.int(), wire.int())
            if start == -1 && end == -1 { return nil }
            guard start >= 0, start <= end, end <= source.count else {
                wire.invalidate()
                return nil
            }
            return start..<end
        }
        exif = range()
        xmp = range()
        let converted = wire.byteArray()
        if !converted.isEmpty { convertedExif = converted }
        let frames = wire.integer(UInt32.self)
        if frames > limits.maximumFrames { wire.invalidate() }
        for _ in 0..<frames {
            // The number may be any.
            guard wire.isValid else { break }
            frameSeconds.append(wire.double())
        }
        guard wire.isComplete, info.format == format, !info.storedSize.isEmpty,
            info.storedSize.longestSide <= Self.maximumNumber, (1...64).contains(info.bitDepth),
            (1...Self.maximumNumber).contains(info.frameCount), info.duration?.isFinite != false,
            (info.loopCount ?? 0) <= Self.maximumNumber, (0...Self.maximumNumber).contains(info.pictureIndex),
            frameSeconds.allSatisfy({ $0.isFinite && $0 >= 0 }),
            info.embeddedPreviews.allSatisfy({
                $0.offset >= 0 && $0.count >= 0 && $0.offset <= source.count && $0.count <= source.count - $0.offset
                    && ($0.size?.longestSide ?? 0) <= Self.maximumNumber
            })
        else { return nil }
        if !profile.isEmpty {
            guard profile.count <= limits.maximumProfileBytes, ICCDescription.isProfile(profile) else { return nil }
            info.colorProfile = profile
        }
    }
}
