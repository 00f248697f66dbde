/// Replaces colours by their luma.
struct GrayscaleProcessor: ImageProcessing {
    var identifier: String { "grayscale" }

    func process(_ image: Image) throws(ImageError) -> Image {
        image.mapPixels(to: image.alpha) { pixel in
            // ITU-R BT.709-6 §3.2: 0.2126 R′ + 0.7152 G′ + 0.0722 B′, in 1/65,536.
            let luma = ((pixel & 255) &* 13_933 &+ (pixel >> 8 & 255) &* 46_871 &+ (pixel >> 16 & 255) &* 4_732
                &+ 32_768) >> 16
            return pixel & 0xff00_0000 | luma &* 0x01_0101
        }
    }
}
