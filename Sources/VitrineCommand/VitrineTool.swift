import ArgumentParser
import CVitrineSandbox
import Logging
import VitrineCore
import VitrineDownloads
import VitrineImaging

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

/// The program `vitrine`. ``HelpTopic/exitStatus`` documents its exit statuses.
@main
struct VitrineTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vitrine",
        abstract: "Makes thumbnails, inspects images, downloads files, and manages caches and stores.",
        discussion: """
            Run 'vitrine help topics' for formats, sizes, output, exit statuses and environment variables.
            """,
        version: HelperVersion.number,
        subcommands: [
            ThumbnailCommand.self, ContactSheetCommand.self, InspectCommand.self, FormatsCommand.self, ShowCommand.self,
            StoryboardCommand.self, FetchCommand.self, DownloadCommand.self, PrecacheCommand.self, CacheCommand.self,
            StoreCommand.self, ObjectsCommand.self, ThumbnailerCommand.self, DoctorCommand.self, ManualCommand.self,
        ]
    )

    static func main() async {
        VitrineWorkerMain.runIfRequested()
        // Memory that one of many threads has freed serves all of them.
        csandbox_limit_arenas(Int32(max(2, ProcessorCount.active)))
        let words = ProcessArguments.words
        // Packages install vitrine-agent as a link to this program, which contains the agent's code in any case.
        if CommandLine.arguments.first?.split(separator: "/").last == "vitrine-agent" {
            terminate(await AgentProcess.run(words))
        }
        Termination.install()
        Self.chooseLog()
        // No helper is left for process 1, which may not reap it.
        WorkerPool.endHelpersOnSignals()
        ToolProcess.adoptOrphans()
        if let text = HelpTopic.text(for: words) {
            Output.text(text)
            exit(withStatus: Output.hasFailed ? .failure : .success)
        }
        if let file = fileLikeOption(in: words) {
            Diagnostics.write(
                "Error: the name of the file \(file) begins with a dash; write ./\(file), or put -- before the names")
            exit(withStatus: .usage)
        }
        if let unknown = CommandTree.unknownCommand(in: words) {
            Diagnostics.write("Error: \(unknown.message)")
            Diagnostics.write("  See '\(unknown.path.joined(separator: " ")) --help' for its commands.")
            exit(withStatus: .usage)
        }
        let command: any ParsableCommand
        do {
            command = try parseAsRoot(words)
        } catch {
            end(with: error, words: words)
        }
        do {
            var command = command
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch let code as ExitCode {
            exit(withStatus: code)
        } catch let error as ValidationError {
            let path = CommandTree.path(to: type(of: command)) ?? ["vitrine"]
            Diagnostics.write("Error: \(error.message)")
            Diagnostics.write("  See '\(path.joined(separator: " ")) --help' for more information.")
            exit(withStatus: .usage)
        } catch {
            end(with: error, words: words)
        }
        exit(withStatus: Output.hasFailed ? .failure : .success)
    }

    /// Shows the notices of the library as lines of the command. `VITRINE_LOG` shows its messages of a level and above.
    private static func chooseLog() {
        let level = ProcessInfo.processInfo.environment["VITRINE_LOG"].flatMap(Logger.Level.init(rawValue:))
        LoggingSystem.bootstrap { label in
            guard let level else { return NoticeLogHandler() }
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = level
            return handler
        }
    }

    /// Returns the first word that is or looks like a file's name and would be read as several short options, as
    /// `-h.jpg` of `*.jpg`.
    private static func fileLikeOption(in words: [String]) -> String? {
        words.prefix { $0 != "--" }.first { word in
            guard word.count > 2, word.hasPrefix("-"), !word.hasPrefix("--") else { return false }
            return FilePath.exists(word) || FormatArgument(path: word) != nil
        }
    }

    /// Prints help that was requested, or an error, and ends the process.
    private static func end(with error: any Error, words: [String]) -> Never {
        switch exitCode(for: error) {
        case .success:
            Output.text(fullMessage(for: error))
            exit(withStatus: Output.hasFailed ? .failure : .success)
        case .validationFailure:
            Diagnostics.writeUsage(fullMessage(for: error), words: words)
            exit(withStatus: .usage)
        default:
            let (input, reason) = Diagnostics.describe(error)
            Diagnostics.write("\(input ?? "vitrine"): \(reason)")
            exit(withStatus: .failure)
        }
    }

    private static func exit(withStatus status: ExitCode) -> Never {
        fflush(nil)
        terminate(status.rawValue)
    }
}

extension ExitCode {
    /// The command line is wrong.
    fileprivate static var usage: ExitCode { ExitCode(2) }
}

/// `exit(3)`, for functions with its name.
private func terminate(_ status: Int32) -> Never { exit(status) }
