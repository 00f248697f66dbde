import Foundation
import TestSupport
import Testing

/// The help texts, manual pages and completions, which all come from the declarations of the options.
@Suite struct HelpCommandTests {
    /// A command as `--experimental-dump-help` describes it.
    private struct Command: Decodable {
        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }

            let kind: String
            let shouldDisplay: Bool
            let isOptional: Bool
            let preferredName: Name?
            let valueName: String?
            let defaultValue: String?
            let abstract: String?

            var label: String { preferredName?.name ?? valueName ?? "" }
        }

        let commandName: String
        let superCommands: [String]?
        let abstract: String?
        let subcommands: [Command]?
        let arguments: [Argument]?

        /// The words behind `vitrine`.
        var words: [String] { Array(((superCommands ?? []) + [commandName]).dropFirst()) }

        /// The command and all below it, without the parser's own `help`.
        var all: [Command] {
            [self] + (subcommands ?? []).filter { $0.commandName != "help" }.flatMap(\.all)
        }
    }

    private func root() async throws -> Command {
        struct Dump: Decodable {
            let command: Command
        }
        let dump = try await Tool.run(["--experimental-dump-help"])
        #expect(dump.status == 0 && dump.errors.isEmpty, "\(dump.errors)")
        return try JSONDecoder().decode(Dump.self, from: Data(dump.bytes)).command
    }

    @Test(arguments: [
        (["thumbnal", "a.jpg"], "thumbnail"), (["help", "inspct"], "inspect"), (["cache", "lsit"], "list"),
        (["help", "cache", "gett"], "get"), (["colour"], nil), (["help", "nosuch"], nil),
    ] as [([String], String?)])
    func unknownCommandsAreErrorsWithASuggestion(words: [String], suggestion: String?) async throws {
        let run = try await Tool.run(words)
        #expect(run.status == 2 && run.bytes.isEmpty)
        #expect(run.errors.contains("is no command of vitrine"), "\(run.errors)")
        #expect(run.errors.contains("did you mean") == (suggestion != nil), "\(run.errors)")
        if let suggestion { #expect(run.errors.contains("“\(suggestion)”"), "\(run.errors)") }
    }

    @Test func aNameThatBeginsWithADashIsNamed() async throws {
        let run = try await Tool.run(["thumbnail", "-n.jpg", "-o", "x.png"])
        #expect(run.status == 2 && run.errors.contains("-n.jpg begins with a dash"), "\(run.errors)")
    }

    @Test func everyOptionHasOneLineWithItsDefault() async throws {
        let commands = try await root().all
        #expect(commands.count > 40)
        for command in commands {
            let name = command.words.joined(separator: " ")
            let abstract = command.abstract ?? ""
            #expect(abstract.count < 100 && abstract.hasSuffix("."), "\(name): \(abstract)")
            for argument in command.arguments ?? [] where argument.shouldDisplay {
                let text = argument.abstract ?? ""
                #expect(!text.isEmpty && text.count <= 125, "\(name) \(argument.label): \(text)")
                #expect(text.first?.isUppercase == true, "\(name) \(argument.label): \(text)")
                #expect(text.hasSuffix(".") || text.hasSuffix(")"), "\(name) \(argument.label): \(text)")
                guard argument.kind != "flag", argument.isOptional, argument.defaultValue == nil else { continue }
                #expect(text.contains("(default: "), "\(name) \(argument.label) tells no default: \(text)")
            }
        }
    }

    @Test func everyCommandPrintsItsHelpWithin80Columns() async throws {
        for command in try await root().all {
            let help = try await Tool.run(command.words + ["--help"])
            #expect(help.status == 0 && help.errors.isEmpty, "\(command.words)")
            #expect(help.output.contains("OVERVIEW: ") && help.output.contains("USAGE: vitrine"))
            // Usage lines are the parser's, which does not wrap them.
            for line in help.output.split(separator: "\n") where !line.hasPrefix("USAGE:") {
                #expect(line.count <= 80, "\(command.words): \(line)")
            }
        }
    }

    @Test func topicsExplainWhatConcernsAllCommands() async throws {
        let all = try await Tool.run(["help", "topics"])
        #expect(all.status == 0 && all.errors.isEmpty)
        for word in [
            "FORMATS:", "SIZES AND TIMES:", "OUTPUT:", "EXIT STATUS:", "ENVIRONMENT VARIABLES:", "JPEG XL", "300x200",
            "--quiet", "130", "143", "VITRINE_WORKER", "XDG_CACHE_HOME", "exit-status",
        ] { #expect(all.output.contains(word), "\(word)") }
        for line in all.output.split(separator: "\n") { #expect(line.count <= 80, "\(line)") }
        for name in ["formats", "sizes", "output", "exit-status", "environment"] {
            let topic = try await Tool.run(["help", name])
            #expect(topic.status == 0 && all.output.contains(topic.output), "\(name)")
        }
        // Other words are subcommands.
        #expect(try await Tool.run(["help", "fetch"]).output == (try await Tool.run(["fetch", "--help"])).output)
        #expect(try await Tool.run(["--help"]).output.contains("vitrine help topics"))
    }

    @Test func manualPagesHaveEveryOptionAndTheExitStatuses() async throws {
        let scratch = try Scratch()
        let directory = scratch.file("man/man1").path
        let outcome = try await Tool.run(["manual", "-o", directory])
        #expect(outcome.status == 0, "\(outcome.errors)")
        let root = try await root()
        let subcommands = (root.subcommands ?? []).filter { $0.commandName != "help" }
        let files = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
        let names = ["vitrine"] + subcommands.map { "vitrine-\($0.commandName)" }
        #expect(files == names.map { $0 + ".1" }.sorted())
        for subcommand in subcommands {
            let path = directory + "/vitrine-\(subcommand.commandName).1"
            let page = try String(contentsOfFile: path, encoding: .utf8)
            #expect(page == (try await Tool.run(["manual", subcommand.commandName])).output)
            #expect(page.utf8.allSatisfy { $0 < 0x80 })
            #expect(page.contains(".SH EXIT STATUS") && page.contains("\\fB129, 130, 143\\fR"))
            for command in subcommand.all {
                let options = (command.arguments ?? []).filter { $0.shouldDisplay && $0.kind != "positional" }
                for argument in options {
                    let name = (argument.preferredName?.kind == "short" ? "-" : "--") + argument.label
                    let bold = "\\fB\(name.replacing("-", with: "\\-"))\\fR"
                    #expect(page.contains(bold), "\(command.words) \(name)")
                }
            }
        }
        let main = try String(contentsOfFile: directory + "/vitrine.1", encoding: .utf8)
        #expect(main == (try await Tool.run(["manual"])).output)
        #expect(main.contains(".SH ENVIRONMENT VARIABLES") && main.contains("VITRINE_BROWSER"))
        #expect(try await Tool.run(["manual", "nothing"]).status == 2)
        #expect(try await Tool.run(["manual", "fetch", "-o", directory]).status == 2)
    }

    private static let groff = "/usr/bin/groff"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: groff), "needs groff"))
    func manualPagesRenderWithoutWarnings() async throws {
        let scratch = try Scratch()
        let written = try await Tool.run(["manual", "-o", scratch.url.path])
        #expect(written.status == 0)
        for path in written.output.split(separator: "\n").map(String.init) {
            let rendered = try await Self.run(Self.groff, ["-man", "-ww", "-Tascii", "-P-cbou", path])
            #expect(rendered.status == 0 && rendered.errors.isEmpty, "\(path): \(rendered.errors)")
            #expect(rendered.output.contains("EXIT STATUS") && rendered.output.contains("--help"), "\(path)")
        }
        let page = try await Self.run(
            Self.groff, ["-man", "-ww", "-Tascii", "-P-cbou", scratch.file("vitrine-thumbnail.1").path])
        #expect(page.output.contains("vitrine thumbnail ~/Pictures/*.jpg --size 320 --format webp -o thumbnails/"))
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completionsAreGenerated(_ shell: String) async throws {
        let script = try await Tool.run(["--generate-completion-script", shell])
        #expect(script.status == 0 && script.errors.isEmpty)
        for word in ["thumbnail", "contact-sheet", "precache", "download"] {
            #expect(script.output.contains(word), "\(word)")
        }
        #expect(script.output.contains(shell == "fish" ? "keep-metadata" : "--keep-metadata"))
        let scratch = try Scratch()
        let file = scratch.file("completions").path
        try Data(script.bytes).write(to: URL(filePath: file))
        // Every system has bash; the others are checked where they are installed.
        let program = shell == "bash" ? "/bin/bash" : "/usr/bin/\(shell)"
        guard shell == "bash" || FileManager.default.isExecutableFile(atPath: program) else { return }
        let checked = try await Self.run(program, ["-n", file])
        #expect(checked.status == 0 && checked.errors.isEmpty, "\(checked.errors)")
        guard shell == "bash" else { return }
        let words = "COMP_WORDS=(vitrine cache st) COMP_CWORD=2 COMP_LINE='vitrine cache st' COMP_POINT=16"
        let offered = try await Self.run(
            program, ["-c", "source '\(file)'; \(words); _vitrine vitrine st cache; echo ${COMPREPLY[@]}"])
        #expect(offered.output == "stats\n", "\(offered.errors)")
    }

    @Test func wrongCommandLinesNameTheSubcommandWithHelp() async throws {
        for (words, advice) in [
            (["cache", "get", "key"], "See 'vitrine cache get --help'"),
            (["thumbnail", "a.jpg", "b.png", "-o", "-"], "See 'vitrine thumbnail --help'"),
            (["thumbnail", "--nothing", "x"], "See 'vitrine thumbnail --help'"),
            (["nothing"], "See 'vitrine --help'"),
        ] {
            let outcome = try await Tool.run(words)
            #expect(outcome.status == 2 && outcome.output.isEmpty, "\(words)")
            #expect(outcome.errors.hasPrefix("Error: ") && outcome.errors.contains(advice), "\(outcome.errors)")
        }
    }

    @Test func errorsNameThePathAndTheRemedy() async throws {
        let scratch = try Scratch()
        let lake = Samples.path("lake.jpg")
        let text = scratch.file("text").path
        try Data("some words".utf8).write(to: URL(filePath: text))
        let missing = scratch.file("missing/x.png").path
        for (words, errors) in [
            (["thumbnail", lake, "-o", missing], "\(lake): cannot write \(missing): its directory does not exist\n"),
            (["contact-sheet", lake, "-o", missing], "\(missing): cannot write it: its directory does not exist\n"),
            (["thumbnail", ""], "'': the name of the input is empty\n"),
            (
                ["thumbnail", lake, lake, "-o", "/proc/none/"],
                "/proc/none/: cannot make the directory: No such file or directory\n"
            ),
            (
                ["fetch", "file://\(lake)", "-o", missing],
                "file://\(lake): cannot write \(missing): its directory does not exist\n"
            ),
            (
                ["fetch", "ftp://a/b"],
                "ftp://a/b: cannot load addresses of this scheme; use http, https, file or data\n"
            ),
            (["fetch", "a"], "a: it is not an address; addresses begin with https:// or http://\n"),
            (["objects", "list", text], "vitrine objects: \(text): it is not an object store, or it is damaged\n"),
            (["store", "save", text + "2", "--root", scratch.file("s").path], "\(text)2: No such file or directory\n"),
            (["thumbnail", lake, "-o", lake], "\(lake): the output \(lake) is the input; name another file with -o\n"),
            (["cache", "put", "k", text, "-n", "c", "--root", text], ": Not a directory\n"),
        ] {
            let outcome = try await Tool.run(words)
            #expect(outcome.status == 1 && outcome.output.isEmpty, "\(words)")
            #expect(outcome.errors.hasSuffix(errors), "\(outcome.errors)")
        }
        // A message of a codec library.
        let cut = scratch.file("cut.jp2")
        try Data(Samples.bytes("lake.jp2").prefix(3000)).write(to: cut)
        let damaged = try await Tool.run(["thumbnail", cut.path, "-o", "-"])
        #expect(damaged.errors.hasPrefix("\(cut.path): it is damaged") && !damaged.errors.contains(";;"))
        #expect(damaged.errors.last == "\n" && damaged.errors.dropLast().last?.isPunctuation == false)

        let directory = try await Tool.run(["contact-sheet", lake, "-o", scratch.url.path])
        #expect(directory.status == 2 && directory.errors.contains("\(scratch.url.path) is a directory"))
    }

    @Test(arguments: ["VITRINE_PDF": "lake.pdf", "VITRINE_VIDEO": "lake.mp4", "VITRINE_WORKER": "lake.tif"])
    func missingHelpersAreNamed(_ variable: String, _ sample: String) async throws {
        let scratch = try Scratch()
        let path = Samples.path(sample)
        let outcome = try await Self.run(
            "/usr/bin/env",
            ["\(variable)=/none", Tool.executable.path, "thumbnail", path, "--no-cache", "-o", scratch.file("x").path])
        #expect(outcome.status == 1 && outcome.errors.hasPrefix("\(path): vitrine-"), "\(outcome.errors)")
        #expect(outcome.errors.contains("set \(variable) to its path"))
        #expect(scratch.contents == [])
    }

    private static func run(
        _ program: String, _ arguments: [String]
    ) async throws -> (status: Int32, output: String, errors: String) {
        try await offPool {
            let scratch = try Scratch()
            let (out, err) = (scratch.file("out"), scratch.file("err"))
            for file in [out, err] { _ = FileManager.default.createFile(atPath: file.path, contents: nil) }
            let process = Process()
            process.executableURL = URL(filePath: program)
            process.arguments = arguments
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = try FileHandle(forWritingTo: out)
            process.standardError = try FileHandle(forWritingTo: err)
            try process.run()
            process.waitUntilExit()
            return (
                process.terminationStatus, try String(contentsOf: out, encoding: .utf8),
                try String(contentsOf: err, encoding: .utf8)
            )
        }
    }
}
