import ArgumentParser
import VitrineImaging

/// A CSS colour: `#fa0`, `rgb(255 170 0)`, `rebeccapurple` …
struct ColorArgument: ExpressibleByArgument {
    let color: PixelColor

    init?(argument: String) {
        guard let color = PixelColor(css: argument) else { return nil }
        self.color = color
    }
}

/// The part of an image that a crop keeps.
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

/// A size in pixels: `WxH`, `Wx`, `xH`, or one number for a square box.
struct SizeArgument: ExpressibleByArgument, Hashable, Sendable {
    var width: Int?
    var height: Int?

    /// The pixels of a result; of one without a second side, those of a square.
    var pixels: Int { (width ?? height ?? 0) * (height ?? width ?? 0) }

    init?(argument: String) {
        func side(_ text: Substring) -> Int? { Int(text).flatMap { $0 > 0 && $0 <= 1_000_000 ? $0 : nil } }
        let parts = argument.lowercased().split(separator: "x", omittingEmptySubsequences: false)
        switch parts.count {
        case 1:
            guard let n = side(parts[0]) else { return nil }
            (width, height) = (n, n)
        case 2:
            guard !(parts[0].isEmpty && parts[1].isEmpty) else { return nil }
            if !parts[0].isEmpty {
                guard let n = side(parts[0]) else { return nil }
                width = n
            }
            if !parts[1].isEmpty {
                guard let n = side(parts[1]) else { return nil }
                height = n
            }
        default:
            return nil
        }
    }

    init(_ side: Int) { (width, height) = (side, side) }

    /// The size as a box. A side that was not given has no limit.
    var box: PixelSize { PixelSize(width: width ?? Self.unbounded, height: height ?? Self.unbounded) }

    private static let unbounded = 1 << 30
}

/// Sizes, separated by commas.
struct SizesArgument: ExpressibleByArgument {
    let sizes: [SizeArgument]

    init?(argument: String) {
        var sizes: [SizeArgument] = []
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            guard let size = SizeArgument(argument: String(part)) else { return nil }
            if !sizes.contains(size) { sizes.append(size) }
        }
        self.sizes = sizes
    }
}

/// The command's names for the resizer's modes.
enum ModeArgument: String, ExpressibleByArgument, CaseIterable {
    case fit, fill, stretch, crop
}

/// The command's names for output formats.
enum FormatArgument: String, ExpressibleByArgument, CaseIterable {
    case jpeg, png, webp, avif, jxl, gif, auto

    /// The format a file name's extension stands for.
    init?(path: String) {
        guard let dot = path.lastIndex(of: ".") else { return nil }
        switch path[path.index(after: dot)...].lowercased() {
        case "jpg", "jpeg": self = .jpeg
        case "png": self = .png
        case "webp": self = .webp
        case "avif": self = .avif
        case "jxl": self = .jxl
        case "gif": self = .gif
        default: return nil
        }
    }

    func outputFormat(quality: Double) -> OutputFormat {
        switch self {
        case .jpeg: .jpeg(quality: quality)
        case .png: .png
        case .webp: .webp(quality: quality)
        case .avif: .avif(quality: quality)
        case .jxl: .jxl(quality: quality)
        case .gif: .gif
        case .auto: .automatic(quality: quality)
        }
    }
}

/// The options for the size of an image.
struct GeometryOptions: ParsableArguments {
    @Option(help: "Size in pixels: WxH, Wx, xH, or one number for a square box. (default: 256)")
    var size: SizeArgument?

    @Option(
        help: "Several sizes, such as 64,256,1024. Each is added to the output's name. (default: the one of --size)")
    var sizes: SizesArgument?

    @Option(help: "Fit inside the size, fill (cover) it, stretch to it, or crop to it.")
    var mode = ModeArgument.fit

    @Flag(help: "Never enlarge an image.")
    var noUpscale = false

    func validate() throws {
        if size != nil, sizes != nil { throw ValidationError("use either --size or --sizes") }
    }

    /// The requested sizes, without duplicates.
    var boxes: [SizeArgument] { sizes?.sizes ?? [size ?? SizeArgument(256)] }

    /// The resizing rules, one for each size.
    func resizers(gravity: Gravity = .center) throws -> [ImageResizer] {
        try boxes.map { try resizer($0, gravity) }
    }

    private func resizer(_ size: SizeArgument, _ gravity: Gravity) throws -> ImageResizer {
        guard let width = size.width, let height = size.height else {
            guard mode == .fit else {
                throw ValidationError("--mode \(mode.rawValue) needs width and height, such as --size 300x200")
            }
            return ImageResizer(size: size.box, mode: .fit, allowsUpscaling: !noUpscale)
        }
        let modes: [ModeArgument: ImageResizer.Mode] = [
            .fit: .fit, .fill: .fill, .stretch: .stretch, .crop: .crop(gravity),
        ]
        return ImageResizer(
            size: PixelSize(width: width, height: height), mode: modes[mode] ?? .fit,
            allowsUpscaling: !noUpscale)
    }
}

extension SizeArgument: CustomStringConvertible {
    var description: String {
        width == height ? "\(width ?? 0)" : "\(width.map(String.init) ?? "")x\(height.map(String.init) ?? "")"
    }
    var defaultValueDescription: String { description }
}
