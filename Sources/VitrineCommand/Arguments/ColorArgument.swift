import ArgumentParser
import VitrineImaging

/// A CSS colour: `#fa0`, `rgb(255 170 0)`, `rebeccapurple` …
struct ColorArgument: ExpressibleByArgument {
    let color: Color

    init?(argument: String) {
        guard let color = Color(css: argument) else { return nil }
        self.color = color
    }
}

/// Where a crop is cut.
struct GravityArgument: ExpressibleByArgument, CustomStringConvertible {
    let gravity: Gravity
    let description: String

    init(_ gravity: Gravity) {
        self.gravity = gravity
        description = "center"
    }

    init?(argument: String) {
        let named: [String: Gravity] = [
            "center": .center, "top": .top, "bottom": .bottom, "left": .left, "right": .right,
            "top-left": .topLeft, "top-right": .topRight, "bottom-left": .bottomLeft, "bottom-right": .bottomRight,
            "attention": .attention,
        ]
        description = argument
        if let gravity = named[argument.lowercased()] {
            self.gravity = gravity
            return
        }
        let parts = argument.split(separator: ",").compactMap { Double($0) }
        guard parts.count == 2, parts.allSatisfy({ (0...1).contains($0) }) else { return nil }
        gravity = .focal(x: parts[0], y: parts[1])
    }

    var defaultValueDescription: String { description }
}
