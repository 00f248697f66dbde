import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine show`: an image, a page or a frame in the terminal.
struct ShowCommand: AsyncParsableCommand {
    /// How the image is drawn.
    enum Graphics: String, ExpressibleByArgument, CaseIterable {
        case auto, kitty, iterm, sixel, blocks, text
    }

    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows an image, a page of a PDF or a frame of a video in the terminal.",
        discussion: """
              vitrine show photo.heic
              vitrine show manual.pdf --page 3 --protocol sixel
              vitrine show moon.gif --still

            --protocol auto asks the terminal for its protocol: the graphics of kitty, inline images of iTerm2, or \
            sixels. In others, it draws characters in all, 256 or 8 colors, and with NO_COLOR or TERM=dumb plain text. \
            An animation plays until its end or until a key is pressed, if the command runs in a terminal.
            """)

    @Argument(help: "Image, PDF, video or web address; - is standard input.", completion: .file())
    var input: String

    @Option(help: "Size in pixels: WxH, Wx, xH, or one number. (default: the size of the terminal)")
    var size: SizeArgument?

    @Option(name: .customLong("protocol"), help: "Graphics protocol of the terminal, or characters.")
    var graphics = Graphics.auto

    @Option(help: ArgumentHelp("CSS color behind transparent pixels. (default: none)", valueName: "color"))
    var background: ColorArgument?

    @Option(help: "Page of a document or frame of an animation, counted from 1. (default: 1)")
    var page: Int?

    @Flag(help: "Show the first frame of an animation instead of playing it.")
    var still = false

    @Option(help: "Moment of a video: seconds from its start, or poster for a typical frame. (default: poster)")
    var time: TimeArgument?

    @Flag(help: "Draw the sound of a recording without a cover over time. Takes vitrine-video.")
    var waveform = false

    @OptionGroup var web: WebPageOptions
    @OptionGroup var decoder: DecoderOptions

    func validate() throws {
        guard page ?? 1 >= 1 else { throw ValidationError("--page is a number from 1") }
    }

    func run() async throws {
        do {
            let mode = await BlockingExecutor.shared.run { [graphics] in Self.mode(graphics) }
            let box = size ?? TerminalSize.pixels(for: mode)
            let request = RenderRequest(
                size: box.box, allowsUpscaling: size != nil, limits: CommandLimits.current)
            var options = SourceDetector.Options(page: page ?? 1, moment: time?.moment ?? .poster)
            options.readsText = true
            options.drawsWaveform = waveform
            let item = try InputItem(word: input)
            let source = try await item.open(options, web: web).source
            let output = TerminalImage(mode: mode, background: background?.color)
            if !still, page == nil, try await play(source, output) { return }
            let image = try await BlockingExecutor.shared.run { Result { try source.image(request) } }.get()
            Output.contents(output.render(image))
        } catch {
            Diagnostics.write("\(input): \(InputFailure.reason(error))")
            throw ExitCode(1)
        }
    }

    /// Returns how to draw. Asks the terminal, if that decides.
    private static func mode(_ graphics: Graphics) -> TerminalImage.Mode {
        let environment = TerminalEnvironment(ProcessInfo.processInfo.environment)
        switch graphics {
        case .auto:
            let answer = environment.answersQueries ? TerminalQuery.ask(isMultiplexed: environment.isMultiplexed) : nil
            return environment.mode(answer: answer)
        case .kitty: return .kitty
        case .iterm: return .iterm
        case .sixel: return .sixel
        case .blocks: return environment.blocks
        case .text: return .text
        }
    }

    /// Plays an animation.
    ///
    /// - Returns: Whether the source is one, and there is a terminal to play it in.
    private func play(_ source: any ImageSource, _ output: TerminalImage) async throws -> Bool {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1, let moving = source as? any MovingSource else {
            return false
        }
        let box = size ?? TerminalSize.pixels(for: output.mode, reserved: TerminalPlayback.rowsBelow)
        let request = RenderRequest(
            size: box.box, allowsUpscaling: size != nil, limits: CommandLimits.current)
        return try await BlockingExecutor.shared.run {
            Result {
                guard let animation = try moving.animation(request, processors: []),
                    let playback = TerminalPlayback(animation, output)
                else { return false }
                try playback.run()
                return true
            }
        }.get()
    }
}
