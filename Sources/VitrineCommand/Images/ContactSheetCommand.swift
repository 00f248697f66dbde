import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine contact-sheet`: all inputs on one image, with captions.
struct ContactSheetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "contact-sheet",
        abstract: "Draws all inputs with captions on one image.",
        discussion: """
              vitrine contact-sheet ~/Pictures manual.pdf video.mp4 --recursive -o sheet.png
              vitrine contact-sheet *.jpg --columns 4 --title "Summer" --captions name -o sheet.jpg

            Titles and captions are drawn by vitrine-text in the fonts of the system. Without it, a sheet has no text.
            """)

    @Argument(help: "Images, PDFs, videos, directories or web addresses; - is standard input.", completion: .file())
    var inputs: [String]

    @Option(
        name: [.customShort("o"), .long], help: "Image file to write. Its extension decides the format; PNG by default.",
        completion: .file(extensions: ["png", "jpg", "webp"]), transform: OutputArgument.normalized)
    var output: String

    @Option(
        help: ArgumentHelp("Height of each image, from 16 to 1024. Images can be a third wider.", valueName: "pixels"))
    var size = 200

    @Option(help: "Images per row, from 1 to 64. (default: as many as make the sheet about square)")
    var columns: Int?

    @Option(help: "Text above all images. (default: none)")
    var title: String?

    @Option(help: "Text below each image: its name with its size and format, its name alone, or none.")
    var captions = ContactSheet.Captions.full

    @Flag(help: "Use the files in directories.")
    var recursive = false

    @OptionGroup(title: "Pages, videos, web pages") var parts: PartOptions
    @OptionGroup(title: "Pages, videos, web pages") var web: WebPageOptions
    @OptionGroup var caches: CacheOptions
    @OptionGroup var decoder: DecoderOptions
    @OptionGroup var progress: ProgressOption

    func validate() throws {
        guard (16...1024).contains(size) else { throw ValidationError("--size is a number from 16 to 1024") }
        if let columns {
            guard (1...64).contains(columns) else { throw ValidationError("--columns is a number from 1 to 64") }
        }
    }

    func run() async throws {
        if Directory.isDirectory(output) {
            throw ValidationError("\(output) is a directory; --output needs the name of an image file")
        }
        try OutputArgument.checkFormat(of: output)
        let expansion = InputExpansion(isRecursive: recursive, pages: parts.pages, password: parts.password)
        let items = await BlockingExecutor.shared.run { [inputs] in expansion.items(inputs) }
        let files = InputFiles(items.compactMap { try? $0.get() })
        if let reason = files.refusal(of: output) { throw ValidationError(reason) }
        try checkRoom(for: items.count { (try? $0.get()) != nil })
        let service = caches.service()
        let room = room(size)
        var cells: [ContactSheet.Item] = []
        var failures = 0
        let bar = ProgressBar(total: items.count, isQuiet: progress.quiet)
        await Batch.run(items, progress: bar, name: { $0.name }) { [parts, web] _, item in
            switch item {
            case .failure(let failure): return Entry(failure: failure)
            case .success(let item):
                do {
                    return Entry(cell: try await Self.cell(item, room: room, parts: parts, web: web, service: service))
                } catch {
                    return Entry(failure: InputFailure(item, error))
                }
            }
        } report: { entry in
            if let cell = entry.cell { cells.append(cell) }
            if let failure = entry.failure {
                if failure.isPassedOver, progress.quiet { return }
                if !failure.isPassedOver { failures += 1 }
                Diagnostics.write(failure.line)
            }
        }
        if !caches.noCache { try? await service.cache.flush() }
        do {
            if !cells.isEmpty {
                let sheet = try await draw(cells)
                let format = (FormatArgument(path: output) ?? .png).outputFormat(quality: OutputFormat.defaultQuality)
                let bytes = try sheet.encoded(as: format)
                if output == "-" { Output.contents(bytes) } else { try AtomicFile.write(bytes, to: output) }
            }
        } catch {
            let reason = (error as? FileError)?.writeCause ?? Diagnostics.describe(error).reason
            Diagnostics.write("\(output): cannot write it: \(reason)")
            failures += 1
        }
        if failures > 0 { throw ExitCode(1) }
    }

    private func room(_ height: Int) -> PixelSize { PixelSize(width: height * 4 / 3, height: height) }

    private func sheet(of count: Int, height: Int) -> ContactSheet {
        ContactSheet(
            title: title.map(Printable.line) ?? "", columns: columns ?? Self.columns(count), imageSize: room(height),
            captions: captions)
    }

    /// Refuses a sheet that would be too large, before anything is decoded.
    private func checkRoom(for count: Int) throws {
        func fits(_ height: Int) -> Bool { (try? sheet(of: count, height: height).size(count: count)) != nil }
        guard count > 0, !fits(size) else { return }
        let largest = stride(from: size, through: 16, by: -1).first(where: fits)
        let advice = largest.map { "--size \($0) fits" } ?? "name fewer inputs, or choose other --columns"
        throw ValidationError("\(count) images of \(size) pixels are too many for one sheet; \(advice)")
    }

    private func draw(_ cells: [ContactSheet.Item]) async throws -> PixelImage {
        var sheet = sheet(of: cells.count, height: size)
        if sheet.hasText, !TextWorkers.shared.isAvailable {
            Diagnostics.write("\(output): without title and captions, as vitrine-text is not installed")
            (sheet.title, sheet.captions) = ("", .none)
        }
        return try await BlockingExecutor.shared.run { [sheet] in Result { try sheet.draw(cells) } }.get()
    }

    /// An image for the sheet, or the reason of its failure.
    private struct Entry: Sendable {
        var cell: ContactSheet.Item?
        var failure: InputFailure?
    }

    /// Returns the columns of a sheet that is about square. At least six, to limit the height of long sheets.
    private static func columns(_ count: Int) -> Int {
        min(count, max(Int((Double(count) * 0.75).squareRoot().rounded(.up)), min(count, 6)))
    }

    private static func cell(
        _ item: InputItem, room: PixelSize, parts: PartOptions, web: WebPageOptions,
        service: ImagePipeline
    ) async throws -> ContactSheet.Item {
        let options = parts.options(page: item.page)
        let opened = try await item.open(options, web: web)
        var detail = try await details(opened, options: options)
        let size = ImageResizer(size: room, mode: .fit, allowsUpscaling: opened.kind.map(\.isDrawn) ?? true)
        var request = ImageRequest(opened.source, resizing: size)
        request.executionPriority = .normal
        if opened.item.isAddress || parts.password != nil { request.cacheLevels = [] }
        let image = try await service.image(for: request)
        if detail.isEmpty { detail = "web page" }
        return ContactSheet.Item(image, title: opened.item.caption, detail: detail)
    }

    private static func details(
        _ opened: InputItem.Opened, options: SourceDetector.Options
    ) async throws -> String {
        guard case .input(let input) = opened.item.content else { return "" }
        switch opened.kind {
        case .image(let format)?:
            let info = try await ImageDecoder(limits: CommandLimits.current).info(of: input)
            let frame = info.frameCount > 1 && options.page > 1 ? " #\(options.page)" : ""
            return "\(info.size) \(format.rawValue)\(frame)"
        case .pdf?: return "pdf, page \(options.page)"
        case .media(let media)?:
            guard case .second(let second) = options.moment else { return media.shortName }
            return "\(media.shortName) at \(second.formatted("%.3g")) s"
        case .font?: return "font"
        case .text?: return "text"
        case nil: return ""
        }
    }
}

extension ContactSheet.Captions: ExpressibleByArgument {}

extension MediaFormat {
    /// The short name for people.
    fileprivate var shortName: String {
        switch self {
        case .mp4: "mp4"
        case .quickTime: "mov"
        case .matroska: "mkv"
        case .webM: "webm"
        case .avi: "avi"
        case .flash: "flv"
        case .asf: "asf"
        case .ogg: "ogg"
        case .transportStream: "ts"
        case .programStream: "mpeg"
        case .mp4Audio: "m4a"
        case .mp3: "mp3"
        case .flac: "flac"
        case .oggAudio: "ogg"
        case .windowsMedia: "wma"
        case .wave: "wav"
        case .aiff: "aiff"
        case .dsf: "dsf"
        case .ape: "ape"
        case .wavPack: "wv"
        case .musepack: "mpc"
        case .tak: "tak"
        }
    }
}
