import VitrineCore
import VitrineImaging
import VitrinePixels

/// Shows images in a terminal.
package struct TerminalImage: Sendable, Hashable {
    /// A way to draw.
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Pixels, by the kitty graphics protocol.
        case kitty
        /// Pixels, by the inline images of iTerm2.
        case iterm
        /// Pixels in up to 256 colours.
        case sixel
        /// Two pixels a character cell in 24-bit colour.
        case halfBlocks
        /// Two pixels a character cell in the 256 colours of xterm, dithered.
        case halfBlocks256
        /// A mixture of the 8 colours of ECMA-48 for two pixels, dithered.
        case shades8
        /// A character of ASCII for two pixels, without colours and without escape sequences.
        case text

        /// Whether a pixel is smaller than a character cell.
        package var hasPixels: Bool {
            switch self {
            case .kitty, .iterm, .sixel: true
            case .halfBlocks, .halfBlocks256, .shades8, .text: false
            }
        }
    }

    package var mode: Mode
    /// The colour behind transparent pixels. Default nil: the terminal's own background. Modes without alpha then leave
    /// out pixels less than half opaque.
    package var background: PixelColor?
    /// Identifies the image for kitty: a later image with the same number takes the place of the earlier one, and the
    /// cursor stays. Default nil: each image stands alone.
    package var imageID: Int?

    package init(mode: Mode, background: PixelColor? = nil) {
        self.mode = mode
        self.background = background
    }

    /// Returns the text that draws `image` at the cursor, with a new line at its end.
    ///
    /// Pixels are drawn one to one. For characters, scale the image to the terminal's columns and twice its rows first.
    package func render(_ image: PixelImage) -> [UInt8] { render(image, codecs: .standard) }

    /// Does the same as ``render(_:)`` with other codecs. With an encoder for PNG, kitty gets PNG; without one, iTerm2
    /// gets half blocks.
    package func render(_ image: PixelImage, codecs: Codecs) -> [UInt8] {
        let composed = background.map { image.composed(over: $0) } ?? image
        let straight = composed.converted(to: composed.hasAlpha ? .straight : .opaque)
        switch mode {
        case .kitty: return KittyGraphics.render(straight, id: imageID, codecs: codecs)
        case .iterm: return ITermImage.render(straight, codecs: codecs) ?? HalfBlocks(depth: .direct).render(straight)
        case .sixel: return Sixel.render(straight)
        case .halfBlocks: return HalfBlocks(depth: .direct).render(straight)
        case .halfBlocks256: return HalfBlocks(depth: .colors256).render(straight)
        case .shades8: return ShadedCells.render(straight)
        case .text: return TextImage.render(straight)
        }
    }
}

/// The properties of a terminal that environment variables name.
package struct TerminalEnvironment: Sendable {
    private let variables: [String: String]

    package init(_ variables: [String: String]) { self.variables = variables }

    private func value(_ name: String) -> String { variables[name]?.lowercased() ?? "" }

    /// Whether it draws escape sequences as text, as editors do, or there is none.
    package var isDumb: Bool { ["", "dumb", "unknown"].contains(value("TERM")) }

    /// Whether no colours are wanted (no-color.org).
    package var avoidsColor: Bool { !value("NO_COLOR").isEmpty }

    /// Whether a multiplexer (tmux, screen) draws, which drops the graphics of kitty and iTerm2.
    package var isMultiplexed: Bool {
        !value("TMUX").isEmpty || !value("STY").isEmpty || value("TERM").hasPrefix("tmux")
            || value("TERM").hasPrefix("screen")
    }

    /// Whether it can be asked for its protocols. The console of Linux may print the question.
    package var answersQueries: Bool { !isDumb && value("TERM") != "linux" }

    private var speaksKitty: Bool {
        !value("KITTY_WINDOW_ID").isEmpty || ["xterm-kitty", "xterm-ghostty"].contains(value("TERM"))
            || ["ghostty", "wezterm"].contains(value("TERM_PROGRAM"))
    }

    /// No terminal tells by an answer. LC_TERMINAL also passes through ssh.
    private var speaksITerm: Bool {
        ["iterm.app", "mintty"].contains(value("TERM_PROGRAM")) || value("LC_TERMINAL") == "iterm2"
    }

    /// Characters in as many colours as there are.
    package var blocks: TerminalImage.Mode {
        let term = value("TERM"), program = value("TERM_PROGRAM")
        if isDumb { return .halfBlocks }
        let hasDirectColor = ["truecolor", "24bit"].contains(value("COLORTERM")) || term.hasSuffix("-direct")
            || ["iterm.app", "vscode"].contains(program)
        if hasDirectColor { return .halfBlocks }
        let hasManyColors = term.contains("256")
            || ["kitty", "ghostty", "alacritty", "foot", "wezterm", "contour"].contains { term.contains($0) }
        return hasManyColors ? .halfBlocks256 : .shades8
    }

    /// Returns the best mode.
    ///
    /// - Parameter answer: The answer of the terminal; nil if it was not asked, or did not answer in time.
    package func mode(answer: TerminalAnswer? = nil) -> TerminalImage.Mode {
        if isDumb { return .text }
        if !isMultiplexed {
            if answer.map(\.hasKitty) ?? speaksKitty { return .kitty }
            if speaksITerm { return .iterm }
        }
        if answer?.hasSixel == true { return .sixel }
        return avoidsColor ? .text : blocks
    }
}
