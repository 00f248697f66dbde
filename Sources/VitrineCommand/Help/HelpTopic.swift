/// A subject that concerns several subcommands, for `vitrine help topics` and the manual pages.
///
/// A text consists of paragraphs and entries; see ``Item``.
struct HelpTopic: Sendable {
    enum Item: Sendable {
        case paragraph(String)
        /// A term and its explanation.
        case entry(String, String)
    }

    /// The word behind `vitrine help`.
    let name: String
    let title: String
    let items: [Item]

    /// All topics, in the order in which they are printed.
    static let all = [formats, sizes, output, exitStatus, environment]

    static let formats = HelpTopic(
        name: "formats", title: "Formats",
        items: [
            .paragraph("vitrine detects the format of an input by its content, not by its name."),
            .entry("Images", FormatNames.sentence(FormatNames.images)),
            .entry(
                "Camera raw",
                FormatNames.sentence(FormatNames.raw) + " vitrine shows the image that the camera put into the file."),
            .entry("Documents", "PDF."),
            .entry(
                "Books and documents",
                FormatNames.sentence(FormatNames.documents)
                    + " vitrine shows the cover, the first page or the thumbnail that the file contains."),
            .entry("Videos", FormatNames.sentence(FormatNames.videos)),
            .entry(
                "Recordings",
                FormatNames.sentence(FormatNames.recordings)
                    + """
                     vitrine shows the cover. --cover chooses among several. --sibling-covers uses an image beside the \
                    file. --waveform draws the sound of a recording without a cover.
                    """),
            .entry(
                "Web addresses",
                """
                Images, PDFs and videos at addresses that begin with http:// or https://. With --web-page, an \
                installed Chromium draws the address as a web page.
                """),
            .entry(
                "Output",
                FormatNames.sentence(FormatNames.outputs)
                    + """
                     --format auto writes PNG for images with transparency, and JPEG for others. Without --format, the \
                    extension of the output decides.
                    """),
            .paragraph("'vitrine formats' lists every kind, how it is read, and the programs that are missing."),
            .paragraph("Some formats need a helper program. vitrine looks for it beside itself, then in PATH."),
            .entry(
                "vitrine-worker",
                "JPEG XL, TIFF, JPEG 2000, SVG, unusual HEIC and AVIF, CBR, CB7, and the option --isolate."),
            .entry("vitrine-pdf", "PDF."),
            .entry("vitrine-video", "Videos, waveforms, and covers that vitrine itself does not find."),
            .entry(
                "vitrine-text",
                "Fonts; text, source code and Markdown, which are files named as arguments; captions of contact sheets."),
            .entry("vitrine-agent", "Downloads that continue after the command ends."),
        ])

    static let sizes = HelpTopic(
        name: "sizes", title: "Sizes and times",
        items: [
            .entry("256", "A box of 256 x 256 pixels."),
            .entry("300x200", "A box of 300 x 200 pixels."),
            .entry("300x, x200", "Only the width or only the height is limited."),
            .paragraph("--mode decides how an image uses the box of --size:"),
            .entry("fit", "The whole image inside the box; one side can be shorter than the box."),
            .entry("fill", "The whole image around the box; one side can be longer than the box."),
            .entry("crop", "Exactly the box; --gravity selects the part of the image that stays."),
            .entry("stretch", "Exactly the box; the proportions change."),
            .paragraph("Byte counts are numbers with an optional unit: 4096, 64k, 500MB or 1.5GiB."),
            .paragraph("Ages are numbers with a unit: 90s, 15m, 12h, 30d or 4w. A number without a unit is in days."),
        ])

    static let output = HelpTopic(
        name: "output", title: "Output",
        items: [
            .paragraph(
                """
                Results go to standard output, errors to standard error as 'input: reason'. One failed input does \
                not stop the others.
                """),
            .paragraph(
                "An output file appears under its name when it is complete, and replaces an existing file only then."),
            .paragraph(
                """
                When standard error is a terminal, a progress bar shows the number of finished inputs, the \
                percentage and the current input. --quiet turns it off.
                """),
            .paragraph(
                """
                --json prints one object per line. Keys without a value are null or absent, as the command \
                documents. New versions can add keys.
                """),
            .paragraph(
                """
                Text shows control characters as \\n or \\u{1B}, and bytes of names that are not UTF-8 as \\xE9. \
                JSON has these bytes as \\udbff\\udee9. A line that is a single name or path has its exact bytes in \
                pipes and files.
                """),
        ])

    static let exitStatus = HelpTopic(
        name: "exit-status", title: "Exit status",
        items: [
            .entry("0", "Everything succeeded."),
            .entry(
                "1",
                """
                An input or the operation failed, a check such as 'cache verify' found damage, or the answer of \
                'store exists' or 'download agent status' is no, or 'doctor' misses something that was asked for.
                """),
            .entry("2", "The command line is wrong. Nothing was done."),
            .entry(
                "129, 130, 143",
                """
                SIGHUP, Ctrl-C (SIGINT) or SIGTERM ended the command. Finished outputs stay, temporary files are \
                removed. fetch and download keep NAME.vitrine-part, NAME.vitrine-head and \
                NAME.vitrine-sums, to resume from them.
                """),
            .entry("141", "The reader of the output closed the pipe (SIGPIPE)."),
        ])

    static let environment = HelpTopic(
        name: "environment", title: "Environment variables",
        items: [
            .entry(
                "VITRINE_WORKER, VITRINE_PDF, VITRINE_VIDEO, VITRINE_TEXT, VITRINE_AGENT",
                "Path of a helper program. (default: beside vitrine, then in PATH)"),
            .entry(
                "VITRINE_LOG",
                "Level of the library's messages on standard error, such as info or warning. (default: none)"),
            .entry(
                "VITRINE_BROWSER",
                "Path of the browser that draws web pages. (default: chromium or google-chrome in PATH)"),
            .entry(
                "VITRINE_WORKER_SANDBOX",
                """
                'required' refuses helper programs without seccomp or Landlock; 'off' allows them without both. \
                (default: seccomp is needed, Landlock is used if the kernel has it)
                """),
            .entry("XDG_CACHE_HOME", "Directory of the caches. (default: ~/.cache)"),
            .entry(
                "XDG_DATA_HOME",
                "Directory of the list of downloads, and of the entries of file managers. (default: ~/.local/share)"),
            .entry(
                "XDG_CONFIG_HOME",
                "Directory of the user's settings, among them the path of the documents. (default: ~/.config)"),
            .entry("XDG_RUNTIME_DIR", "Directory of the socket of the download agent. (default: one below TMPDIR)"),
            .entry("TMPDIR", "Directory of temporary files, such as the profile of the browser. (default: /tmp)"),
            .entry("http_proxy, https_proxy, all_proxy, no_proxy", "Proxies of fetch and download, as for curl."),
            .entry(
                "TERM, TERM_PROGRAM, LC_TERMINAL, COLORTERM, NO_COLOR, KITTY_WINDOW_ID",
                "The abilities of the terminal, for 'vitrine show --protocol auto'."),
            .entry("COLUMNS", "Width of help texts. (default: the width of the terminal, or 80)"),
        ])

    // MARK: Text

    /// Returns the text that `vitrine help topics` or `vitrine help NAME` prints; nil for any other command line.
    static func text(for words: [String]) -> String? {
        guard words.count == 2, words[0] == "help" else { return nil }
        let columns = min(80, TerminalSize.columns())
        if words[1] == "topics" {
            let names = all.map(\.name).joined(separator: ", ")
            let advice = "'vitrine help NAME' prints one topic. NAME is one of \(names)."
            let texts = all.map { $0.text(columns: columns) }
                + [WrappedText.lines(advice, columns: columns).joined(separator: "\n")]
            return texts.joined(separator: "\n\n")
        }
        return all.first { $0.name == words[1] }?.text(columns: columns)
    }

    /// Returns the topic as plain text.
    func text(columns: Int) -> String {
        var lines = ["\(title.uppercased()):"]
        for item in items {
            switch item {
            case .paragraph(let text): lines += WrappedText.lines(text, columns: columns, indent: 2)
            case .entry(let term, let text):
                lines += WrappedText.entry("  " + term, text, at: 26, columns: columns)
            }
        }
        return lines.joined(separator: "\n")
    }
}
