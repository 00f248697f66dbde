import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// The files by which file managers learn that `vitrine` makes thumbnails (GNOME, MATE, Cinnamon and Xfce read them).
///
/// There are two, as pictures and films are never shown larger than they are, while pages and drawings have no size of
/// their own.
struct ThumbnailerEntry: Sendable {
    let fileName: String
    let mediaTypes: [String]
    let allowsUpscaling: Bool

    /// The entries for what the helpers that are installed can read; those without any type are left out.
    static var all: [ThumbnailerEntry] {
        let decoder = ImageDecoder()
        var pictures = ImageFormat.builtIn.filter { $0 != .svg && decoder.canDecode($0) }.flatMap(\.mediaTypes)
        if VideoWorkers.shared.isAvailable { pictures += films }
        var documents: [String] = []
        if PDFWorkers.shared.isAvailable { documents.append("application/pdf") }
        if decoder.canDecode(.svg) { documents += ImageFormat.svg.mediaTypes }
        return [
            ThumbnailerEntry(fileName: "vitrine.thumbnailer", mediaTypes: pictures, allowsUpscaling: false),
            ThumbnailerEntry(fileName: "vitrine-documents.thumbnailer", mediaTypes: documents, allowsUpscaling: true),
        ].filter { !$0.mediaTypes.isEmpty }
    }

    /// The names of all entries, whether they would be installed or not.
    static let fileNames = ["vitrine.thumbnailer", "vitrine-documents.thumbnailer"]

    private static let films =
        FileKind.Media.allCases.map(\.rawValue) + [
            "video/3gpp", "video/3gpp2", "video/x-m4v", "video/vnd.avi", "video/x-ms-wmv", "video/x-ogm+ogg",
            "video/x-theora+ogg", "audio/x-m4b",
        ]

    /// The file's text.
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

    /// A word of a command line as GLib takes it apart; a percent sign would begin a placeholder.
    private static func quoted(_ word: String) -> String {
        let plain = word.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                || "/._-+".utf8.contains(byte)
        }
        let text = word.replacing("%", with: "%%")
        return plain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
