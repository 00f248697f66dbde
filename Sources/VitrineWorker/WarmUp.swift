import CVitrineVips
import VitrineImaging

/// Loads what decoding takes from the file system, before the sandbox closes it.
enum WarmUp {
    /// Codec modules come with libvips' start; fonts with the first text that is painted.
    static func run() {
        guard cvips_start() == CVIPS_OK else { return }
        let document = """
            <svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><g font-size="4">
            <text y="4">Ab</text><text y="8" font-family="serif" font-weight="bold">Ab</text>
            <text y="12" font-family="monospace" font-style="italic">Ab</text></g></svg>
            """
        let info = ImageInfo(format: .svg, storedSize: PixelSize(16))
        let source = ByteSource(bytes: Array(document.utf8), name: "warm-up")
        // Its result is of no interest: without fonts or librsvg the worker still reads everything else.
        _ = try? VipsDecoder().decode(source, DecodeRequest(info: info, target: nil))
    }
}
