import ArgumentParser
import VitrineCore

/// `vitrine manual`: the manual pages of the command.
struct ManualCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual",
        abstract: "Writes the manual pages, for packages and installations.",
        discussion: """
            There is one page for vitrine and one for each subcommand:

              vitrine manual -o ~/.local/share/man/man1
              man vitrine-thumbnail

            The completions of a shell come from 'vitrine --generate-completion-script', with bash, zsh or fish.
            """)

    @Argument(help: "Subcommand to print the page of. (default: the page of vitrine itself)")
    var subcommand: String?

    @Option(
        name: [.customShort("o"), .long],
        help: "Directory for all pages; it is made if needed. (default: one page to standard output)",
        completion: .directory)
    var output: String?

    func validate() throws {
        guard subcommand == nil || output == nil else { throw ValidationError("use either a subcommand or --output") }
    }

    func run() async throws {
        let root = try CommandTree.root()
        let pages = [root] + root.shown
        guard let output else {
            guard let page = subcommand.map({ name in root.shown.first { $0.commandName == name } }) ?? root else {
                throw ValidationError("there is no subcommand \(subcommand ?? "")")
            }
            return Output.contents(Array(ManualPage(page, of: root).roff().utf8))
        }
        try Directory.create(output, mode: 0o777)
        for page in pages {
            let path = FilePath.join(output, page.path.joined(separator: "-") + ".1")
            try AtomicFile.write(Array(ManualPage(page, of: root).roff().utf8), to: path)
            Output.name(path)
        }
    }
}

/// A manual page as roff source with the macros of man(7).
private struct ManualPage {
    private let command: CommandTree
    private let root: CommandTree
    private var lines: [String] = []

    init(_ command: CommandTree, of root: CommandTree) {
        self.command = command
        self.root = root
    }

    private var isRoot: Bool { command.path.count == 1 }

    /// Returns the page.
    func roff() -> String {
        var page = self
        page.write()
        return page.lines.joined(separator: "\n") + "\n"
    }

    private mutating func write() {
        let name = command.path.joined(separator: "-")
        lines.append(".TH \(Self.escaped(name.uppercased())) 1 \"\" \"Vitrine\" \"Vitrine\"")
        lines.append(".SH NAME")
        lines.append("\(Self.escaped(name)) \\- \(Self.escaped(Self.summary(command)))")
        lines.append(".SH SYNOPSIS")
        for command in command.shown.isEmpty ? [command] : command.shown { synopsis(command) }
        lines.append(".SH DESCRIPTION")
        text(command.abstract)
        text(command.discussion)
        if isRoot {
            lines.append(".SH SUBCOMMANDS")
            for subcommand in root.shown {
                entry(Self.bold("vitrine-\(subcommand.commandName)") + "(1)", subcommand.abstract)
            }
        } else if !command.shown.isEmpty {
            lines.append(".SH SUBCOMMANDS")
            subcommands(of: command)
        }
        options(command, heading: ".SH")
        for topic in isRoot ? HelpTopic.all : [.exitStatus] { write(topic) }
        lines.append(".SH SEE ALSO")
        let others = isRoot ? root.shown.map { "vitrine-\($0.commandName)" } : ["vitrine"]
        lines.append(others.map { Self.bold($0) + "(1)" }.joined(separator: ",\n"))
    }

    private mutating func subcommands(of command: CommandTree) {
        for subcommand in command.shown {
            lines.append(".SS \(Self.escaped(subcommand.path.joined(separator: " ")))")
            text(subcommand.abstract)
            text(subcommand.discussion)
            options(subcommand, heading: nil)
            subcommands(of: subcommand)
        }
    }

    private mutating func synopsis(_ command: CommandTree) {
        let arguments = (command.arguments ?? []).filter(\.shouldDisplay)
        var words = [Self.bold(command.path.joined(separator: " "))]
        if arguments.contains(where: { $0.kind != .positional && $0.isOptional && !$0.isCommon }) {
            words.append("[\\fIoptions\\fR]")
        }
        for argument in arguments where argument.kind == .option && !argument.isOptional {
            words.append("\(Self.bold(argument.preferredName?.text ?? "")) \(Self.value(argument))")
        }
        for argument in arguments where argument.kind == .positional {
            let value = Self.value(argument) + (argument.isRepeating ? " ..." : "")
            words.append(argument.isOptional ? "[\(value)]" : value)
        }
        if !command.shown.isEmpty { words.append("\\fIsubcommand\\fR") }
        lines.append(words.joined(separator: " "))
        lines.append(".br")
    }

    private mutating func options(_ command: CommandTree, heading: String?) {
        var arguments = (command.arguments ?? []).filter(\.shouldDisplay)
        // Options that every command has are explained once per page.
        if heading == nil { arguments.removeAll(where: \.isCommon) }
        let sections: [(title: String, arguments: [CommandTree.Argument])] =
            [("Arguments", arguments.filter { $0.kind == .positional && $0.sectionTitle == nil })]
            + Self.titles(arguments).map { title in (title, arguments.filter { $0.sectionTitle == title }) }
            + [("Options", arguments.filter { $0.kind != .positional && $0.sectionTitle == nil })]
        for section in sections where !section.arguments.isEmpty {
            if let heading { lines.append("\(heading) \(Self.escaped(section.title.uppercased()))") }
            for argument in section.arguments {
                entry(Self.label(argument), Self.explanation(argument))
                text(argument.discussion, begins: ".IP")
            }
        }
    }

    private static func titles(_ arguments: [CommandTree.Argument]) -> [String] {
        arguments.compactMap(\.sectionTitle).reduce(into: []) { titles, title in
            if !titles.contains(title) { titles.append(title) }
        }
    }

    /// The names and the value of an argument.
    private static func label(_ argument: CommandTree.Argument) -> String {
        guard argument.kind != .positional else { return value(argument) }
        let names = (argument.names ?? []).sorted { $0.text.count < $1.text.count }.map { bold($0.text) }
        return names.joined(separator: ", ") + (argument.kind == .option ? " \(value(argument))" : "")
    }

    private static func value(_ argument: CommandTree.Argument) -> String {
        "\\fI\(escaped(argument.valueName ?? "value"))\\fR"
    }

    /// The line that `--help` prints for an argument.
    private static func explanation(_ argument: CommandTree.Argument) -> String {
        var notes: [String] = []
        if let values = argument.allValues { notes.append("values: \(values.joined(separator: ", "))") }
        if let value = argument.defaultValue { notes.append("default: \(value)") }
        let note = notes.isEmpty ? nil : "(\(notes.joined(separator: "; ")))"
        return [argument.abstract, note].compactMap(\.self).joined(separator: " ")
    }

    private static func summary(_ command: CommandTree) -> String {
        let text = command.abstract ?? ""
        return text.prefix(1).lowercased() + text.dropFirst().prefix { $0 != "." }
    }

    private mutating func write(_ topic: HelpTopic) {
        lines.append(".SH \(Self.escaped(topic.title.uppercased()))")
        for item in topic.items {
            switch item {
            case .paragraph(let text): self.text(text)
            case .entry(let term, let text): entry(Self.bold(term), text)
            }
        }
    }

    private mutating func entry(_ label: String, _ text: String?) {
        lines += [".TP", label, Self.escaped(text ?? "")]
    }

    /// Paragraphs; lines that are indented are examples and stay as they are.
    private mutating func text(_ text: String?, begins macro: String = ".PP") {
        guard let text else { return }
        for paragraph in text.split(separator: "\n\n") {
            guard paragraph.hasPrefix("  ") else {
                lines += [macro, Self.escaped(paragraph.replacing("\n", with: " "))]
                continue
            }
            lines += [".PP", ".RS 4", ".nf"]
            lines += paragraph.split(separator: "\n").map { Self.escaped(String($0.drop { $0 == " " })) }
            lines += [".fi", ".RE"]
        }
    }

    // MARK: Roff

    private static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fR" }

    /// Text that roff(7) prints as it stands. Characters outside ASCII are named, as not every formatter reads UTF-8.
    private static func escaped(_ text: some StringProtocol) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
            }
        }
        // A dot or an apostrophe at the beginning of a line would make it a request.
        return result.hasPrefix(".") ? "\\&" + result : result
    }
}
