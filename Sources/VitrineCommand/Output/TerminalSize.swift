import Foundation
import VitrineImaging

/// How much room the terminal has.
enum TerminalSize {
    /// The columns of the terminal that a descriptor leads to; 80 if it leads to none.
    static func columns(of descriptor: Int32) -> Int { window(descriptor).map { Int($0.ws_col) } ?? 80 }

    private static func window(_ descriptor: Int32) -> winsize? {
        var window = winsize()
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
        return isKnown ? window : nil
    }

    /// The box a picture may fill, in pixels of the given method; assumes 80 columns and 24 rows when standard output
    /// is no terminal.
    static func pixels(for method: TerminalPicture.Mode) -> SizeArgument {
        let window = window(STDOUT_FILENO).flatMap { $0.ws_row > 1 ? $0 : nil }
        let columns = window.map { Int($0.ws_col) } ?? 80
        let rows = (window.map { Int($0.ws_row) } ?? 24) - 1
        var box = SizeArgument(1)
        switch method {
        case .halfBlocks, .halfBlocks256:
            (box.width, box.height) = (columns, rows * 2)
        case .kitty, .sixel:
            // Terminals may say nothing of their pixels.
            let width = window.map { Int($0.ws_xpixel) / columns } ?? 0
            let height = window.map { Int($0.ws_ypixel) / (rows + 1) } ?? 0
            (box.width, box.height) = (columns * (width > 0 ? width : 8), rows * (height > 0 ? height : 16))
        }
        return box
    }
}
