extension DecodedImage {
    /// Copies a decoded picture out of a worker's shared memory, believing nothing: planes must lie within the payload,
    /// match the colour model, and respect `limits`. Nil when anything is amiss.
    package init?(
        _ shape: WorkerReply.DecodedShape, memory: SharedMemory, requestedProfile: [UInt8]?, limits: ImageLimits
    ) {
        guard Self.areConsistent(shape) else { return nil }
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

    private static func copy(_ plane: WorkerReply.Plane, memory: SharedMemory) -> PixelPlane? {
        let sides = 1...(1 << 24)
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
