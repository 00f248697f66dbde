import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

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

/// `vitrine thumbnailer`: registers `vitrine` with file managers.
struct ThumbnailerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumbnailer",
        abstract: "Registers vitrine as the program that makes thumbnails for file managers.",
        discussion: """
            The entries name the running program, and the file types that it and its helper programs can read. They \
            are files in thumbnailers below the user's data directory. GNOME runs thumbnailers in a sandbox that \
            contains /usr only: install vitrine there.
            """,
        subcommands: [
            ThumbnailerShowCommand.self, ThumbnailerInstallCommand.self, ThumbnailerUninstallCommand.self,
        ])

    static var directory: String { FilePath.join(Directories.current.data, "thumbnailers") }

    /// The path of the running program.
    static var program: String {
        HelperProgram.running ?? "/usr/bin/vitrine"
    }
}

/// `vitrine thumbnailer show`.
struct ThumbnailerShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Prints the entries that 'install' writes.")

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
        commandName: "install", abstract: "Writes the entries, and replaces older ones.")

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
            let (path, reason) = Diagnostics.describe(error)
            Diagnostics.write("\(path ?? directory): cannot write it: \(reason)")
            throw ExitCode(1)
        }
        if !program.hasPrefix("/usr/") {
            Diagnostics.write(
                "\(program): GNOME and other file managers with a sandbox can only run programs below /usr")
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

/// The files that register `vitrine` with file managers. GNOME, MATE, Cinnamon and Xfce read them.
///
/// There are two: images and videos are never enlarged, but pages and drawings have no size in pixels.
private struct ThumbnailerEntry: Sendable {
    let fileName: String
    let mediaTypes: [String]
    let allowsUpscaling: Bool

    /// The entries for the types that the installed helpers can read. An entry without types is left out.
    static var all: [ThumbnailerEntry] {
        let decoder = ImageDecoder()
        var images = Codecs.standard.formats.filter { $0 != .svg && decoder.canDecode($0) }.flatMap(\.mediaTypes)
        // The covers of recordings need no helper.
        images += VideoWorkers.shared.isAvailable ? videos + recordings : recordings
        var documents: [String] = []
        if PDFWorkers.shared.isAvailable { documents.append("application/pdf") }
        if TextWorkers.shared.isAvailable { documents += fonts }
        if decoder.canDecode(.svg) { documents += ImageFormat.svg.mediaTypes }
        return [
            ThumbnailerEntry(fileName: "vitrine.thumbnailer", mediaTypes: images, allowsUpscaling: false),
            ThumbnailerEntry(fileName: "vitrine-documents.thumbnailer", mediaTypes: documents, allowsUpscaling: true),
        ].filter { !$0.mediaTypes.isEmpty }
    }

    /// The names of all entries, installed or not.
    static let fileNames = ["vitrine.thumbnailer", "vitrine-documents.thumbnailer"]

    private static let fonts = [
        "font/ttf", "font/otf", "font/collection", "font/woff", "font/woff2", "application/x-font-ttf",
        "application/x-font-otf", "application/x-font-type1", "application/x-font-pcf", "application/x-font-bdf",
        "application/font-woff", "application/vnd.ms-opentype",
    ]

    private static let videos =
        MediaFormat.allCases.filter { !$0.isAudio }.map(\.rawValue) + [
            "video/3gpp", "video/3gpp2", "video/x-m4v", "video/vnd.avi", "video/x-ms-wmv", "video/x-ogm+ogg",
            "video/x-theora+ogg",
        ]

    private static let recordings =
        MediaFormat.allCases.filter(\.isAudio).map(\.rawValue) + [
            "audio/x-m4b", "audio/x-vorbis+ogg", "audio/x-opus+ogg", "audio/x-flac+ogg", "audio/x-speex+ogg",
            "audio/vnd.wave", "audio/x-aifc",
        ]

    /// Returns the text of the file.
    ///
    /// - Parameter program: The path of `vitrine`.
    func text(program: String) -> String {
        let growing = allowsUpscaling ? "" : " --no-upscale"
        let command = "\(Self.quoted(program)) thumbnail --no-cache --format png --size %s\(growing) -o %o -- %i"
        return """
            [Thumbnailer Entry]
            TryExec=\(program)
            Exec=\(command)
            MimeType=\(mediaTypes.map { $0 + ";" }.joined())

            """
    }

    /// Returns a word quoted for the command lines of GLib, where a percent sign begins a placeholder.
    private static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || "/._-+".utf8.contains(byte)
        }
        let text = word.replacing("%", with: "%%")
        return plain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
