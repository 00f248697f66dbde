import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// `vitrine precache`: thumbnails on disk before anybody asks for them.
struct PrecacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "precache",
        abstract: "Fills the cache with thumbnails of all that is in directories.",
        discussion: """
            What is in the cache already is passed over, so that a second run costs next to nothing. Thumbnails are \
            found again by programs that ask for the same size, and with --desktop by file managers, whose sizes are \
            128, 256, 512 and 1024.
            """)

    @Argument(help: "Directories, with all below them, or files.")
    var inputs: [String]

    @OptionGroup var geometry: GeometryOptions
    @OptionGroup var parts: PartOptions
    @OptionGroup var isolation: IsolationOption
    @OptionGroup var web: WebPageOptions

    @Flag(help: "Fill the cache of file managers instead of this user's own.")
    var desktop = false

    @Option(help: "What tells the caches of a program apart that has several.")
    var name: String?

    @Option(help: ArgumentHelp("Directory the caches are in.", discussion: "Default: vitrine in the user's caches."))
    var root: String?

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    func validate() throws {
        _ = try geometry.resizers()
        guard parts.password == nil else {
            throw ValidationError("nothing of encrypted documents is kept, so --password has no use here")
        }
        if desktop {
            let sides = Set(DesktopThumbnailSize.allCases.map(\.side))
            guard geometry.boxes.allSatisfy({ $0.width == $0.height && sides.contains($0.width ?? 0) }),
                geometry.mode == .fit
            else { throw ValidationError("--desktop takes the sizes 128, 256, 512 and 1024, and no --mode") }
            guard parts.page == nil, parts.pages == nil, parts.time == nil else {
                throw ValidationError("--desktop takes no --page, --pages or --time")
            }
        }
    }

    func run() async throws {
        let expansion = InputExpansion(isRecursive: true, mayBeEmpty: true, pages: parts.pages)
        let items = await BlockingExecutor.shared.run { [inputs] in expansion.items(inputs) }
        let work = PrecacheJob(
            boxes: try geometry.resizers(), parts: parts, web: web,
            desktop: desktop ? DesktopThumbnailCache() : nil, name: name, root: root)
        var total = PrecacheReport()
        await Batch.run(items) { _, item in
            switch item {
            case .success(let item): await work.run(item)
            case .failure(let failure): PrecacheReport(failure)
            }
        } report: { report in
            if let input = report.input, let error = report.error { Diagnostics.write("\(input): \(error)") }
            total.add(report)
        }
        await work.finish()
        if json {
            Output.json(total)
        } else {
            Output.row("\(total.made) made, \(total.skipped) there already, \(total.failed) failed")
        }
        if total.failed > 0 { throw ExitCode(1) }
    }
}

/// What became of one input, or of all.
struct PrecacheReport: Sendable, Encodable {
    var input: String?
    var made = 0
    var skipped = 0
    var failed = 0
    var error: String?

    init() {}

    init(_ failure: InputFailure) {
        input = failure.name
        error = failure.reason
        failed = 1
    }

    private enum CodingKeys: String, CodingKey {
        case made, skipped, failed
    }

    mutating func add(_ other: PrecacheReport) {
        made += other.made
        skipped += other.skipped
        failed += other.failed
    }
}
