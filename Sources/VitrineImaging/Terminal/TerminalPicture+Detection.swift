extension TerminalPicture.Mode {
    /// The best way for the terminal that set these environment variables; nil when it can show no picture.
    ///
    /// Never ``TerminalPicture/Mode/sixel``. A multiplexer (tmux, screen) swallows graphics, so half blocks are used
    /// inside it whatever the terminal outside can do.
    package static func detected(environment: [String: String]) -> TerminalPicture.Mode? {
        func value(_ name: String) -> String { environment[name]?.lowercased() ?? "" }
        let term = value("TERM"), program = value("TERM_PROGRAM")
        guard !term.isEmpty, term != "dumb" else { return nil }
        let isMultiplexed = !value("TMUX").isEmpty || !value("STY").isEmpty || term.hasPrefix("tmux")
            || term.hasPrefix("screen")
        if !isMultiplexed {
            let speaksKitty = !value("KITTY_WINDOW_ID").isEmpty || term == "xterm-kitty" || term == "xterm-ghostty"
                || ["ghostty", "wezterm"].contains(program)
            if speaksKitty { return .kitty }
        }
        let hasDirectColor = ["truecolor", "24bit"].contains(value("COLORTERM")) || term.hasSuffix("-direct")
            || ["iterm.app", "vscode"].contains(program)
        return hasDirectColor ? .halfBlocks : .halfBlocks256
    }
}
