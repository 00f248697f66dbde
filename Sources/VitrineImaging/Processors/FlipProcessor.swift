/// Mirrors the picture.
struct FlipProcessor: ImageProcessing {
    let axis: FlipAxis

    var identifier: String { "flip(\(axis.rawValue))" }

    func process(_ image: Image) throws(ImageError) -> Image {
        let right = image.width - 1, bottom = image.height - 1
        switch axis {
        case .horizontal: return image.moved(to: image.size) { (right &- $0, $1) }
        case .vertical: return image.moved(to: image.size) { ($0, bottom &- $1) }
        }
    }
}
