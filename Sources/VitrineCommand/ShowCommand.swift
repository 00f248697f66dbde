import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// `vitrine show`: a picture, a page or a frame in the terminal.
struct ShowCommand: AsyncParsableCommand {
    enum Method: String, ExpressibleByArgument, CaseIterable {
        case auto, kitty, sixel, blocks
    }

    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows a picture, a page of a PDF or a frame of a film in the terminal.",
        discussion: "auto uses the kitty protocol where the terminal is known to have it, else half blocks.")

    @Argument(help: "A picture, PDF, film or http address; - is standard input.")
    var input: String

    @OptionGroup var isolation: IsolationOption

    @Option(help: "Size in pixels: WxH, Wx, xH, or one number. Default: what fits the terminal.")
    var size: SizeArgument?

    @Option(help: "How to draw.")
    var method = Method.auto

    @Option(help: "CSS colour to put behind transparent pixels.")
    var background: ColorArgument?

    @Option(help: "Page of a document or frame of an animation, from 1.")
    var page = 1

    @Option(help: "Moment of a film: seconds from its beginning, or poster. Default: poster.")
    var time: TimeArgument?

    @OptionGroup var web: WebPageOptions

    func validate() throws {
        guard page >= 1 else { throw ValidationError("--page counts from 1") }
    }

    func run() async throws {
        do {
            let environment = ProcessInfo.processInfo.environment
            let method: TerminalPicture.Mode =
                switch method {
                case .auto: TerminalPicture.Mode.detected(environment: environment) ?? .halfBlocks
                case .kitty: .kitty
                case .sixel: .sixel
                case .blocks: .halfBlocks
                }
            let box = size ?? TerminalSize.pixels(for: method)
            let unbounded = 1 << 30
            let request = RenderRequest(
                size: PixelSize(width: box.width ?? unbounded, height: box.height ?? unbounded),
                allowsUpscaling: size != nil)
            let options = SourceDetector.Options(page: page, moment: time?.moment ?? .poster)
            let item = try InputItem(word: input)
            let image = try await BlockingExecutor.shared.run { [web] in
                Result { try item.source(options, web: web).source.image(request) }
            }.get()
            let bytes = TerminalPicture(mode: method, background: background?.color).render(image)
            Output.contents(bytes)
        } catch {
            let (_, reason) = Diagnostics.describe(error)
            Diagnostics.write("\(input): \(reason)")
            throw ExitCode(1)
        }
    }
}
