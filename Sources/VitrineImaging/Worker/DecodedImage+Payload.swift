extension DecodedImage {
    /// Copies a decoded picture out of a worker's shared memory, believing nothing: planes must lie within the payload,
    /// match the colour model, and respect `limits`. Nil when anything is amiss.
    package init?(
        _ shape: WorkerReply.DecodedShape, memory: SharedMemory, requestedProfile: [UInt8]?, limits: ImageLimits
    ) {
        guard Self.areConsistent(shape), Self.isWithinLimits(shape, limits) else { return nil }
        var planes: [PixelPlane] = []
        for plane in shape.planes {
            guard let copied = Self.copy(plane, memory: memory) else { return nil }
            planes.append(copied)
        }
        var profile: [UInt8]?
        switch shape.profile {
        case .none: break
        case .requested: profile = requestedProfile
        case .payload(let offset, let count):
            guard count <= limits.maximumProfileBytes, let copied = memory.bytes(at: offset, count: count) else {
                return nil
            }
            profile = copied
        }
        self.init(
            planes: planes, model: shape.model, alpha: shape.alpha, colorProfile: profile, isPartial: shape.isPartial,
            samplesAreMeans: shape.samplesAreMeans)
    }

    private static func areConsistent(_ shape: WorkerReply.DecodedShape) -> Bool {
        let extra = shape.alpha == .none ? 0 : 1
        let channels = shape.planes.map(\.channels)
        switch shape.model {
        case .gray: return channels == [1 + extra]
        case .rgb: return channels == [3 + extra]
        case .cmyk: return channels == [4]
        case .yCbCr: return channels.count == 3 + extra && channels.allSatisfy { $0 == 1 }
        }
    }

    /// Whether a picture can have so many pixels, in rows that are not mostly padding, and all planes together as many
    /// bytes as there is room for: what is copied is memory of this process.
    private static func isWithinLimits(_ shape: WorkerReply.DecodedShape, _ limits: ImageLimits) -> Bool {
        let output = PixelSize(limits.maximumOutputSide).pixelCount
        let pixels = max(limits.maximumPixels, output)
        var bytes = 0
        for plane in shape.planes {
            let row = plane.width.multipliedReportingOverflow(by: plane.channels)
            let size = plane.bytesPerRow.multipliedReportingOverflow(by: plane.height)
            guard plane.width > 0, plane.height > 0, !row.overflow, !size.overflow,
                PixelSize(width: plane.width, height: plane.height).pixelCount <= pixels,
                plane.bytesPerRow / 2 <= max(row.partialValue, 64)
            else { return false }
            let (sum, overflow) = bytes.addingReportingOverflow(size.partialValue)
            guard !overflow, sum <= WorkerProtocol.memorySize else { return false }
            bytes = sum
        }
        return true
    }

    private static func copy(_ plane: WorkerReply.Plane, memory: SharedMemory) -> PixelPlane? {
        let sides = 1..<(1 << 24)
        guard sides.contains(plane.width), sides.contains(plane.height), (1...4).contains(plane.channels),
            plane.bytesPerRow >= plane.width * plane.channels, plane.bytesPerRow <= 1 << 27,
            plane.extentWidth > 0, plane.extentWidth <= Double(plane.width),
            plane.extentHeight > 0, plane.extentHeight <= Double(plane.height),
            let storage = memory.copy(at: plane.offset, count: plane.bytesPerRow * plane.height)
        else { return nil }
        return PixelPlane(
            width: plane.width, height: plane.height, channels: plane.channels, bytesPerRow: plane.bytesPerRow,
            extentWidth: plane.extentWidth, extentHeight: plane.extentHeight, storage: storage)
    }
}
