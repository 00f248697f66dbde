import CGTK

/// The drawing of an ``ImagePaintable``. The GObject owns it, because widgets can retain that longer than the Swift
/// object.
@MainActor
final class PaintableCanvas {
    /// An image and the way it fits into the place.
    struct Layer {
        let texture: Texture
        /// nil for the fit of the canvas.
        let fit: ContentFit?
    }

    /// A cross-fade between two images.
    struct Fade {
        let from: Layer?
        /// The time of the first frame, in microseconds.
        var start: Int64?
        /// The progress from 0 to 1.
        var progress = 0.0
    }

    var fit = ContentFit.cover
    var shown: Layer?
    var fading: Fade?
    /// The identity of the current fade.
    var turn = 0
    /// The number of pixels a point.
    var scale = 1.0
    var drawnSize: (width: Double, height: Double)?
    var isDrawRequested = false
    var onDraw: (@MainActor () -> Void)?

    func draw(on snapshot: OpaquePointer, _ width: Double, _ height: Double) {
        let isOtherSize = drawnSize.map { $0 != (width, height) } ?? true
        drawnSize = (width, height)
        if isDrawRequested || isOtherSize, let onDraw {
            isDrawRequested = false
            // Nothing may change during a drawing, so this call comes later.
            Task { @MainActor in onDraw() }
        }
        let progress = fading.map { min(1, max(0, $0.progress)) } ?? 1
        if let from = fading?.from, progress < 1 {
            // The old image stays opaque under the new one, or the background would show through.
            draw(from, on: snapshot, width: width, height: height, opacity: isCovered(from) ? 1 : 1 - progress)
        }
        if let shown { draw(shown, on: snapshot, width: width, height: height, opacity: progress) }
    }

    private func isCovered(_ layer: Layer) -> Bool {
        guard let shown else { return false }
        if [.cover, .fill].contains(shown.fit ?? fit) { return true }
        let (one, other) = (shown.texture.size, layer.texture.size)
        return abs(Double(one.width * other.height) / Double(one.height * other.width) - 1) < 0.02
    }

    private func draw(_ layer: Layer, on snapshot: OpaquePointer, width: Double, height: Double, opacity: Double) {
        let size = layer.texture.size
        let (drawnWidth, drawnHeight) = (layer.fit ?? fit).size(
            of: Double(size.width) / scale, Double(size.height) / scale, in: width, height)
        var box = graphene_rect_t(), clip = graphene_rect_t()
        graphene_rect_init(
            &box, Float((width - drawnWidth) / 2), Float((height - drawnHeight) / 2), Float(drawnWidth),
            Float(drawnHeight))
        graphene_rect_init(&clip, 0, 0, Float(width), Float(height))
        let isClipped = drawnWidth > width + 0.5 || drawnHeight > height + 0.5
        if isClipped { gtk_snapshot_push_clip(snapshot, &clip) }
        if opacity < 1 { gtk_snapshot_push_opacity(snapshot, opacity) }
        gtk_snapshot_append_texture(snapshot, layer.texture.pointer, &box)
        if opacity < 1 { gtk_snapshot_pop(snapshot) }
        if isClipped { gtk_snapshot_pop(snapshot) }
    }
}
