/// A rectangle of a GIF's canvas.
struct GIFArea {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole canvas.
    init(_ size: PixelSize) {
        self.init(x: 0, y: 0, width: size.width, height: size.height)
    }
}
