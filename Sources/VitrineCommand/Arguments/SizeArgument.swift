import ArgumentParser
import VitrineImaging

/// `WxH`, `Wx`, `xH` or one number for a square, in pixels.
struct SizeArgument: ExpressibleByArgument, Hashable, Sendable {
    var width: Int?
    var height: Int?

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

    /// The size as a box; a side that is not given is as long as it comes out.
    var box: PixelSize { PixelSize(width: width ?? Self.unbounded, height: height ?? Self.unbounded) }

    private static let unbounded = 1 << 30
}

/// Sizes with commas between them.
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

/// The options that say how large a picture is to be.
struct GeometryOptions: ParsableArguments {
    @Option(help: "Size in pixels: WxH, Wx, xH, or one number for a square box. Default: 256.")
    var size: SizeArgument?

    @Option(help: "Several sizes at once, such as 64,256,1024; names of results end in theirs.")
    var sizes: SizesArgument?

    @Option(
        help: "fit inside the size, fill (cover) it, stretch to it, or crop to it.")
    var mode = ModeArgument.fit

    @Flag(help: "Never make a picture larger than it is.")
    var noUpscale = false

    func validate() throws {
        if size != nil, sizes != nil { throw ValidationError("--size and --sizes exclude each other") }
    }

    /// The sizes asked for, each once.
    var boxes: [SizeArgument] { sizes?.sizes ?? [size ?? SizeArgument(256)] }

    /// The rules these options mean, one for each size.
    func resizers(gravity: Gravity = .center) throws -> [ImageResizer] {
        try boxes.map { try resizer($0, gravity) }
    }

    private func resizer(_ size: SizeArgument, _ gravity: Gravity) throws -> ImageResizer {
        guard let width = size.width, let height = size.height else {
            guard mode == .fit else {
                throw ValidationError("--mode \(mode.rawValue) needs both sides of the size")
            }
            return ImageResizer(size: size.box, mode: .aspectFit, allowsUpscaling: !noUpscale)
        }
        let modes: [ModeArgument: ImageResizer.Mode] = [
            .fit: .aspectFit, .fill: .aspectFill, .stretch: .fill, .crop: .crop(gravity),
        ]
        return ImageResizer(
            size: PixelSize(width: width, height: height), mode: modes[mode] ?? .aspectFit,
            allowsUpscaling: !noUpscale)
    }
}

extension SizeArgument: CustomStringConvertible {
    var description: String {
        width == height ? "\(width ?? 0)" : "\(width.map(String.init) ?? "")x\(height.map(String.init) ?? "")"
    }
    var defaultValueDescription: String { description }
}
