import ArgumentParser
import Foundation
import VitrineCore

/// `vitrine thumbnailer`: makes file managers use `vitrine`.
struct ThumbnailerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnailer",
        abstract: "Makes file managers show thumbnails made by vitrine.",
        discussion: """
            Entries are put into thumbnailers in the user's directory for data. They name the program that is running \
            now, and the types of files that it and the helpers beside it can read. GNOME starts thumbnailers in a \
            sandbox that shows them /usr alone: install the programs there for it.
            """,
        subcommands: [
            ThumbnailerShowCommand.self, ThumbnailerInstallCommand.self, ThumbnailerUninstallCommand.self,
        ])

    static var directory: String { FilePath.join(Directories.current.data, "thumbnailers") }

    /// The program that is running.
    static var program: String {
        HelperProgram.running ?? "/usr/bin/vitrine"
    }
}

/// `vitrine thumbnailer show`.
struct ThumbnailerShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Prints the entries that install would write.")

    func run() async throws {
        for entry in ThumbnailerEntry.all {
            Output.row("# \(FilePath.join(ThumbnailerCommand.directory, entry.fileName))")
            Output.text(entry.text(program: ThumbnailerCommand.program))
        }
    }
}

/// `vitrine thumbnailer install`.
struct ThumbnailerInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install", abstract: "Writes the entries, over older ones.")

    func run() async throws {
        let (directory, program) = (ThumbnailerCommand.directory, ThumbnailerCommand.program)
        do {
            try Directory.create(directory)
            for entry in ThumbnailerEntry.all {
                let path = FilePath.join(directory, entry.fileName)
                try AtomicFile.write(PathText.bytes(of: entry.text(program: program)), to: path)
                Output.name(path)
            }
        } catch {
            Diagnostics.write("\(directory): \(Diagnostics.describe(error).reason)")
            throw ExitCode(1)
        }
        if !program.hasPrefix("/usr/") {
            Diagnostics.write(
                "\(program): file managers that sandbox thumbnailers, as GNOME's, see programs below /usr only")
        }
    }
}

/// `vitrine thumbnailer uninstall`.
struct ThumbnailerUninstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall", abstract: "Removes the entries.")

    func run() async throws {
        var failures = 0
        for name in ThumbnailerEntry.fileNames {
            let path = FilePath.join(ThumbnailerCommand.directory, name)
            if unlink(path) == 0 {
                Output.name(path)
            } else if errno != ENOENT {
                Diagnostics.write("\(path): \(String(cString: strerror(errno)))")
                failures += 1
            }
        }
        if failures > 0 { throw ExitCode(1) }
    }
}
