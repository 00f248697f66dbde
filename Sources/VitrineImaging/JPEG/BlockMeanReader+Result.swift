extension BlockMeanReader {
    /// The planes in the form the contract of decoders has for their colour model.
    func makeResult() throws(ImageError) -> Result {
        guard let frame else { throw corrupt("no frame header") }
        let model: DecodedImage.Model
        let pixelPlanes: [PixelPlane]
        if planes.count == 1 {
            model = .gray
            pixelPlanes = planes.map(\.plane)
        } else if hints.isRGB(frame.components) {
            model = .rgb
            pixelPlanes = [interleaved()]
        } else {
            model = .yCbCr(.bt601, fullRange: true)
            pixelPlanes = planes.map(\.plane)
        }
        let completeness = progress.map { Double($0.done) / Double(max(1, $0.of)) }.min() ?? 0
        return Result(
            image: DecodedImage(planes: pixelPlanes, model: model, isPartial: damage != nil, samplesAreMeans: true),
            isProgressive: frame.isProgressive, completeness: completeness)
    }

    /// Red, green and blue planes as one. Subsampled ones, which no encoder makes, repeat their samples.
    private func interleaved() -> PixelPlane {
        // The component with the largest factors has the most samples.
        let width = planes.map(\.size.width).max() ?? 1
        let height = planes.map(\.size.height).max() ?? 1
        let storage = PixelStorage(uninitializedByteCount: width * height * 3)
        let output = storage.bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
        for (channel, plane) in planes.enumerated() {
            for y in 0..<height {
                let row = plane.base + y * plane.size.height / height * plane.bytesPerRow
                let target = output + y * width * 3 + channel
                for x in 0..<width { target[x * 3] = row[x * plane.size.width / width] }
            }
        }
        return PixelPlane(
            width: width, height: height, channels: 3, extentWidth: planes.map(\.extentWidth).max(),
            extentHeight: planes.map(\.extentHeight).max(), storage: storage)
    }
}
