import Foundation
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// What the command says on standard error, where nobody hears of failures to say it.
enum Diagnostics {
    /// One line, escaped as ``Printable/line(_:)`` does.
    static func write(_ line: String) {
        _ = StandardStream.write(Array((Printable.line(line) + "\n").utf8), to: STDERR_FILENO)
    }

    /// What the parser of the command line says, which has several lines and repeats words of the command line.
    static func writeUsage(_ text: String, words: [String]) {
        var text = text
        // In a word an end of a line is no more welcome than elsewhere. Values may stand behind `=` and `-x`.
        for word in words where Printable.line(word) != word {
            let value = word.firstIndex(of: "=").map { word[word.index(after: $0)...] } ?? ""
            for part in [word[...], value, word.dropFirst(2)] where part.unicodeScalars.contains("\n") {
                text = text.replacing(part, with: Printable.line(String(part)))
            }
        }
        _ = StandardStream.write(Array((Printable.lines(text) + "\n").utf8), to: STDERR_FILENO)
    }

    /// What draws on a terminal, as it is.
    static func draw(_ text: String) {
        _ = StandardStream.write(Array(text.utf8), to: STDERR_FILENO)
    }

    /// `path: reason`, in words a person can act on.
    static func describe(_ error: any Error) -> (input: String?, reason: String) {
        switch error {
        case let error as ImageError: (error.input, error.reason)
        case let error as ImagePipelineError: (error.source, error.reason)
        case let error as NetworkError: (error.url, error.reason)
        case let failure as InputFailure: (failure.name, failure.reason)
        case is CancellationError: (nil, "cancelled")
        default: (nil, String(describing: error))
        }
    }
}
