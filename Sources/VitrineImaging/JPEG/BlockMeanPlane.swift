/// The samples of one component of a block-mean decode, as they come into being.
struct BlockMeanPlane {
    /// Samples a row in memory and rows, whole MCUs.
    let bytesPerRow: Int
    /// Samples that belong to the picture.
    let size: PixelSize
    let extentWidth: Double
    let extentHeight: Double
    let storage: PixelStorage

    /// Memory for a component, all of it mid-grey, which is what damaged files show where data is missing.
    init(_ frame: JPEGFrame, component: Int, scale: BlockMeanScale) {
        let c = frame.components[component]
        let perBlock = scale.samplesPerBlock
        let blocks = frame.blocks(of: component)
        extentWidth = Double(frame.width * c.horizontal) / Double(frame.maximumHorizontal * scale.rawValue)
        extentHeight = Double(frame.height * c.vertical) / Double(frame.maximumVertical * scale.rawValue)
        size = PixelSize(
            width: min(blocks.width * perBlock, Int(extentWidth.rounded(.up))),
            height: min(blocks.height * perBlock, Int(extentHeight.rounded(.up))))
        bytesPerRow = frame.mcuColumns * c.horizontal * perBlock
        let count = bytesPerRow * frame.mcuRows * c.vertical * perBlock
        storage = PixelStorage(uninitializedByteCount: count)
        storage.bytes.initializeMemory(as: UInt8.self, repeating: 128)
    }

    /// The first sample. Never nil: a component has at least one block.
    var base: UnsafeMutablePointer<UInt8> { storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self) }

    /// What the contract of decoders calls it.
    var plane: PixelPlane {
        PixelPlane(
            width: size.width, height: size.height, channels: 1, bytesPerRow: bytesPerRow,
            extentWidth: extentWidth, extentHeight: extentHeight, storage: storage)
    }
}
