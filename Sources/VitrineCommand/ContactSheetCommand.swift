import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// `vitrine contact-sheet`: all inputs on one picture, with captions.
struct ContactSheetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "contact-sheet",
        abstract: "Draws a contact sheet: all inputs on one PNG, with captions.")

    @Argument(help: "Pictures, PDFs, films, directories, http addresses; - is standard input.")
    var inputs: [String]

    @OptionGroup var parts: PartOptions
    @OptionGroup var web: WebPageOptions
    @OptionGroup var caches: CacheOptions
    @OptionGroup var isolation: IsolationOption

    @Flag(help: "Take directories apart.")
    var recursive = false

    @Option(help: "Height of each picture, in pixels; it may be a third wider.")
    var size = 200

    @Option(help: "Pictures a row. Default: about as wide as high.")
    var columns: Int?

    @Option(help: "A line above all pictures.")
    var title = ""

    @Option(name: [.customShort("o"), .long], help: "The PNG to write.")
    var output: String

    func validate() throws {
        guard (16...1024).contains(size) else { throw ValidationError("--size goes from 16 to 1024") }
        if let columns {
            guard (1...64).contains(columns) else { throw ValidationError("--columns goes from 1 to 64") }
        }
    }

    func run() async throws {
        let expansion = InputExpansion(isRecursive: recursive, pages: parts.pages, password: parts.password)
        let items = await BlockingExecutor.shared.run { [inputs] in expansion.items(inputs) }
        let service = caches.service()
        let room = PixelSize(width: size * 4 / 3, height: size)
        var cells: [ContactSheet.Item] = []
        var failures = 0
        await Batch.run(items) { [parts, web] _, item in
            do {
                let item = try item.get()
                return Entry(cell: try await Self.cell(item, room, parts, web, service))
            } catch let failure as InputFailure {
                return Entry(failure: "\(failure.name): \(failure.reason)")
            } catch {
                let name = (try? item.get())?.name ?? ""
                return Entry(failure: "\(name): \(Diagnostics.describe(error).reason)")
            }
        } report: { entry in
            if let cell = entry.cell { cells.append(cell) }
            if let failure = entry.failure {
                failures += 1
                Diagnostics.write(failure)
            }
        }
        if !caches.noCache { try? await service.cache.flush() }
        do {
            if !cells.isEmpty {
                let columns = columns ?? Self.columns(cells.count)
                let sheet = try ContactSheet(title: title, columns: columns, pictureSize: room).draw(cells)
                try AtomicFile.write(try sheet.encoded(as: .png), to: output)
            }
        } catch {
            Diagnostics.write("\(output): \(Diagnostics.describe(error).reason)")
            failures += 1
        }
        if failures > 0 { throw ExitCode(1) }
    }

    /// A picture for the sheet, or why there is none.
    private struct Entry: Sendable {
        var cell: ContactSheet.Item?
        var failure: String?
    }

    /// About as wide as high, but no narrower than it must be to keep many rows within what a picture may measure.
    private static func columns(_ count: Int) -> Int {
        min(count, max(Int((Double(count) * 0.75).squareRoot().rounded(.up)), min(count, 6)))
    }

    private static func cell(
        _ item: InputItem, _ room: PixelSize, _ parts: PartOptions, _ web: WebPageOptions,
        _ service: ImagePipeline
    ) async throws -> ContactSheet.Item {
        let options = parts.options(page: item.page)
        let (source, kind) = try await BlockingExecutor.shared.run { Result { try item.source(options, web: web) } }.get()
        var detail = try await details(item, kind, options)
        let size = ImageResizer(size: room, mode: .aspectFit, allowsUpscaling: kind == .pdf || kind == nil)
        var request = ImageRequest(source, size: size)
        request.executionPriority = .normal
        if item.isWebPage || parts.password != nil { request.cacheLevels = [] }
        let image = try await service.image(for: request)
        if detail.isEmpty { detail = "web page" }
        return ContactSheet.Item(image, title: item.caption, detail: detail)
    }

    private static func details(
        _ item: InputItem, _ kind: FileKind?, _ options: SourceDetector.Options
    ) async throws -> String {
        guard case .input(let input) = item.content else { return "" }
        switch kind {
        case .image(let format)?:
            let info = try await ImageDecoder().info(of: input)
            let frame = info.frameCount > 1 && options.page > 1 ? " #\(options.page)" : ""
            return "\(info.size) \(format.rawValue)\(frame)"
        case .pdf?: return "pdf, page \(options.page)"
        case .media(let media)?:
            guard case .second(let second) = options.moment else { return media.shortName }
            return "\(media.shortName) at \(second.formatted()) s"
        case nil: return ""
        }
    }
}

extension FileKind.Media {
    /// What people call it.
    var shortName: String {
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
        }
    }
}
