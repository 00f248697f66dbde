/// The frame header of a JPEG file: size, process and components (ITU-T T.81 §B.2.2).
struct JPEGFrame {
    struct Component {
        var id: UInt8
        /// Sampling factors, 1...4.
        var horizontal: Int
        var vertical: Int
        /// The quantisation table it uses, 0...3.
        var quantization: Int
    }

    /// Why a frame header is refused.
    enum Refusal: Error {
        case corrupt(String)
        case unsupported(String)
    }

    var width: Int
    var height: Int
    var isProgressive: Bool
    var components: [Component]
    var maximumHorizontal = 1
    var maximumVertical = 1

    /// Reads the body of an SOF segment.
    init(marker: UInt8, _ body: UnsafeBufferPointer<UInt8>) throws(Refusal) {
        guard marker <= JPEGMarker.progressiveFrame else { throw .unsupported("lossless, hierarchical or arithmetic") }
        guard body.count >= 6 else { throw .corrupt("frame header too short") }
        guard body[0] == 8 else { throw .unsupported("\(body[0]) bits a sample") }
        isProgressive = marker == JPEGMarker.progressiveFrame
        height = Int(body[1]) << 8 | Int(body[2])
        width = Int(body[3]) << 8 | Int(body[4])
        let count = Int(body[5])
        guard width > 0, height > 0 else { throw .unsupported("no size in the frame header") }
        guard count == 1 || count == 3 else { throw .unsupported("\(count) components") }
        guard body.count >= 6 + 3 * count else { throw .corrupt("frame header too short") }
        components = (0..<count).map { i in
            let factors = body[7 + 3 * i]
            return Component(
                id: body[6 + 3 * i], horizontal: Int(factors >> 4), vertical: Int(factors & 15),
                quantization: Int(body[8 + 3 * i]))
        }
        for component in components {
            guard 1...4 ~= component.horizontal, 1...4 ~= component.vertical, component.quantization < 4 else {
                throw .corrupt("sampling factors or table out of range")
            }
        }
        guard Set(components.map(\.id)).count == count else { throw .unsupported("components share a name") }
        if count == 1 {
            // A single component is never interleaved, so its factors mean nothing (§A.2.2).
            components[0].horizontal = 1
            components[0].vertical = 1
        }
        maximumHorizontal = components.map(\.horizontal).max() ?? 1
        maximumVertical = components.map(\.vertical).max() ?? 1
    }

    /// MCUs a row and rows of MCUs of an interleaved scan.
    var mcuColumns: Int { (width + 8 * maximumHorizontal - 1) / (8 * maximumHorizontal) }
    var mcuRows: Int { (height + 8 * maximumVertical - 1) / (8 * maximumVertical) }

    /// Blocks a row and rows of blocks that a component's samples fill: the MCUs of a scan of its own (§A.2.3).
    func blocks(of component: Int) -> PixelSize {
        let c = components[component]
        let samples = PixelSize(
            width: (width * c.horizontal + maximumHorizontal - 1) / maximumHorizontal,
            height: (height * c.vertical + maximumVertical - 1) / maximumVertical)
        return PixelSize(width: (samples.width + 7) / 8, height: (samples.height + 7) / 8)
    }
}
