/// Shows pictures in a terminal.
///
/// Sources: the kitty graphics protocol (sw.kovidgoyal.net/kitty/graphics-protocol), sixel as in the DEC VT330/VT340
/// Programmer Reference Manual, volume 2, chapter 14, and ECMA-48 §8.3.117 with the direct colours of ISO 8613-6.
package struct TerminalPicture: Sendable, Hashable {
    /// A way to draw.
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Pixels, by the kitty graphics protocol.
        case kitty
        /// Pixels in up to 256 colours. Whether a terminal can is known by asking it alone, so ask for it explicitly.
        case sixel
        /// Two pixels a character cell in 24-bit colour.
        case halfBlocks
        /// Two pixels a character cell in the 256 colours of xterm.
        case halfBlocks256
    }

    package var mode: Mode
    /// Shown through transparent pixels; nil (the default) shows the terminal's own background, in modes without alpha
    /// by leaving out pixels less than half opaque.
    package var background: Color?

    package init(mode: Mode, background: Color? = nil) {
        self.mode = mode
        self.background = background
    }

    /// The text that draws `image` at the cursor, ended by a new line.
    ///
    /// Pixels are drawn one to one: for half blocks, scale the picture first to as many columns as the terminal may
    /// use and twice as many rows.
    package func render(_ image: Image) -> [UInt8] { render(image, registry: .standard) }

    /// ``render(_:)`` with encoders of the caller's choice: with one for PNG, kitty gets PNG.
    package func render(_ image: Image, registry: EncoderRegistry) -> [UInt8] {
        let composed = background.map { image.composed(over: $0) } ?? image
        let straight = composed.converted(to: composed.hasAlpha ? .straight : .opaque)
        switch mode {
        case .kitty: return KittyGraphics.render(straight, registry: registry)
        case .sixel: return Sixel.render(straight)
        case .halfBlocks: return HalfBlocks(hasDirectColor: true).render(straight)
        case .halfBlocks256: return HalfBlocks(hasDirectColor: false).render(straight)
        }
    }
}
