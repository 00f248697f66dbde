import Testing
import VitrineCompatibility
import VitrineImaging

struct ContentModeTests {
    private let content = PointSize(width: 40, height: 20)
    private let bounds = PointSize(width: 100, height: 100)

    @Test(arguments: [
        (ImageContentMode.stretch, 0, 0, 100, 100), (.fit, 0, 25, 100, 50), (.fill, -50, 0, 200, 100),
        (.unscaled(.center), 30, 40, 40, 20), (.unscaled(.top), 30, 0, 40, 20), (.unscaled(.bottom), 30, 80, 40, 20),
        (.unscaled(.left), 0, 40, 40, 20), (.unscaled(.right), 60, 40, 40, 20), (.unscaled(.topLeft), 0, 0, 40, 20),
        (.unscaled(.topRight), 60, 0, 40, 20), (.unscaled(.bottomLeft), 0, 80, 40, 20),
        (.unscaled(.bottomRight), 60, 80, 40, 20), (.unscaled(.attention), 30, 40, 40, 20),
        (.unscaled(.focal(x: 0.25, y: 1)), 15, 80, 40, 20),
    ] as [(ImageContentMode, Double, Double, Double, Double)])
    func frameOfEveryMode(mode: ImageContentMode, x: Double, y: Double, width: Double, height: Double) {
        #expect(mode.frame(for: content, in: bounds) == (x, y, width, height))
    }

    @Test func scalesOfEveryMode() {
        #expect(ImageContentMode.stretch.scales(for: content, in: bounds) == (2.5, 5))
        #expect(ImageContentMode.fit.scales(for: content, in: bounds) == (2.5, 2.5))
        #expect(ImageContentMode.fill.scales(for: content, in: bounds) == (5, 5))
        let anchors: [Gravity] = [
            .center, .top, .bottom, .left, .right, .topLeft, .topRight, .bottomLeft, .bottomRight,
        ]
        for anchor in anchors { #expect(ImageContentMode.unscaled(anchor).scales(for: content, in: bounds) == (1, 1)) }
        #expect(ImageContentMode.fit.scales(for: .init(width: 0, height: 3), in: bounds) == (1, 1))
    }
}
