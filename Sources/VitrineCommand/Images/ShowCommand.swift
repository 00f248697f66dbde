import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine show`: an image, a page or a frame in the terminal.
struct ShowCommand: AsyncParsableCommand {
    enum Method: String, ExpressibleByArgument, CaseIterable {
        case auto, kitty, sixel, blocks
    }

    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows an image, a page of a PDF or a frame of a film in the terminal.",
        discussion: """
              vitrine show photo.heic
              vitrine show manual.pdf --page 3 --method sixel

            --method auto uses the kitty protocol in terminals that support it, and half blocks in others.
            """)

    @Argument(help: "Image, PDF, film or web address; - is standard input.", completion: .file())
    var input: String

    @Option(help: "Size in pixels: WxH, Wx, xH, or one number. (default: the size of the terminal)")
    var size: SizeArgument?

    @Option(help: "Graphics protocol of the terminal.")
    var method = Method.auto

    @Option(help: ArgumentHelp("CSS color behind transparent pixels. (default: none)", valueName: "color"))
    var background: ColorArgument?

    @Option(help: "Page of a document or frame of an animation, counted from 1.")
    var page = 1

    @Option(help: "Moment of a film: seconds from its start, or poster for a typical frame. (default: poster)")
    var time: TimeArgument?

    @OptionGroup var web: WebPageOptions
    @OptionGroup var isolation: IsolationOption

    func validate() throws {
        guard page >= 1 else { throw ValidationError("--page is a number from 1") }
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
            var options = SourceDetector.Options(page: page, moment: time?.moment ?? .poster)
            options.readsText = true
            let item = try InputItem(word: input)
            let source = try await item.source(options, web: web).source
            let image = try await BlockingExecutor.shared.run { Result { try source.image(request) } }.get()
            let bytes = TerminalPicture(mode: method, background: background?.color).render(image)
            Output.contents(bytes)
        } catch {
            let (_, reason) = Diagnostics.describe(error)
            Diagnostics.write("\(input): \(reason)")
            throw ExitCode(1)
        }
    }
}
