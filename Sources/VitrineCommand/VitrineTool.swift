import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging

/// `vitrine`: thumbnails, headers, caches, downloads, and pictures in the terminal.
///
/// Exit status: 0 everything done, 1 some inputs failed, 2 the command line is wrong.
@main
struct VitrineTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vitrine",
        abstract: "Makes thumbnails of pictures, pages, films and web pages, reads headers, downloads, and keeps caches.",
        discussion: """
            Exit status: 0 all done, 1 some inputs failed, 2 bad usage.
            Text shows control characters as \\n or \\u{1B}, and bytes of names that are no UTF-8 as \\xE9; \
            JSON has these bytes as \\udbff\\udee9. A line that is one name or path has its bytes in pipes and files.
            """,
        version: "0.1.0",
        subcommands: [
            ThumbnailCommand.self, ContactSheetCommand.self, InspectCommand.self, ShowCommand.self,
            FetchCommand.self, DownloadCommand.self, PrecacheCommand.self, CacheCommand.self, StoreCommand.self,
            ObjectsCommand.self, ThumbnailerCommand.self,
        ]
    )

    static func main() async {
        let words = ProcessArguments.words
        // No helper is left for process 1, which may not reap it.
        WorkerPool.endHelpersOnSignals()
        ToolProcess.adoptOrphans()
        do {
            var command = try parseAsRoot(words)
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            if Output.hasFailed { exit(withStatus: 1) }
        } catch let code as ExitCode {
            exit(withStatus: code.rawValue)
        } catch {
            let text = fullMessage(for: error)
            guard exitCode(for: error) != .success else {
                print(text)
                exit(withStatus: 0)
            }
            Diagnostics.writeUsage(text, words: words)
            exit(withStatus: exitCode(for: error) == .validationFailure ? 2 : 1)
        }
    }

    private static func exit(withStatus status: Int32) -> Never {
        fflush(nil)
        Foundation.exit(status)
    }
}
