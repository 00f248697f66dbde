import Testing
import VitrineImaging

struct ContentModeTests {
    private let content = ContentMode.Size(width: 40, height: 20)
    private let bounds = ContentMode.Size(width: 100, height: 100)

    @Test(arguments: [
        (ContentMode.scaleToFill, 0, 0, 100, 100), (.aspectFit, 0, 25, 100, 50), (.aspectFill, -50, 0, 200, 100),
        (.redraw, 30, 40, 40, 20), (.center, 30, 40, 40, 20), (.top, 30, 0, 40, 20), (.bottom, 30, 80, 40, 20),
        (.left, 0, 40, 40, 20), (.right, 60, 40, 40, 20), (.topLeft, 0, 0, 40, 20), (.topRight, 60, 0, 40, 20),
        (.bottomLeft, 0, 80, 40, 20), (.bottomRight, 60, 80, 40, 20),
    ] as [(ContentMode, Double, Double, Double, Double)])
    func frameOfEveryMode(mode: ContentMode, x: Double, y: Double, width: Double, height: Double) {
        #expect(mode.frame(for: content, in: bounds) == ContentMode.Frame(x: x, y: y, width: width, height: height))
    }

    @Test func scalesOfEveryMode() {
        for mode in ContentMode.allCases {
            let expected: (Double, Double) =
                switch mode {
                case .scaleToFill: (2.5, 5)
                case .aspectFit: (2.5, 2.5)
                case .aspectFill: (5, 5)
                default: (1, 1)
                }
            #expect(mode.scales(for: content, in: bounds) == expected)
        }
        #expect(ContentMode.allCases.count == 13)
        #expect(ContentMode.aspectFit.scales(for: .init(width: 0, height: 3), in: bounds) == (1, 1))
    }
}
