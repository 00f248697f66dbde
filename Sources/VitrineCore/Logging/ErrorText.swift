#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An error that names the path, URL or name it concerns, which an error around it need not repeat.
package protocol ErrorWithInput: Error {
    /// The path, URL or name; nil for an error without one.
    var namedInput: String? { get }
    /// The reason and the advice, without the input and without a full stop at the end.
    var textWithoutInput: String { get }
}

/// Builds the descriptions of errors: one line, with the input and each full stop once.
package enum ErrorText {
    /// The longest text of an input in a description, in characters.
    private static let longestInput = 200

    /// Returns an input for descriptions. URLs can contain a whole image, and keys can be 10 KB long.
    package static func shortened(_ input: String) -> String {
        // Counting all characters of a long text would take time in proportion to it.
        input.prefix(longestInput + 1).count <= longestInput ? input : input.prefix(longestInput - 1) + "…"
    }

    /// Returns a text without full stops at its end.
    package static func withoutStop(_ text: String) -> String {
        var text = text[...]
        while text.last == "." || text.last == " " { text.removeLast() }
        return String(text)
    }

    /// Returns a sentence, and a second one for the advice, if there is any.
    package static func sentence(_ text: String, advice: String? = nil) -> String {
        let sentence = withoutStop(text) + "."
        guard let advice else { return sentence }
        return "\(sentence) \(advice.prefix(1).uppercased())\(withoutStop(String(advice.dropFirst())))."
    }

    /// Returns a text and the advice, if there is any, without a full stop: `too many bytes; raise the limit`.
    package static func line(_ text: String, advice: String?) -> String {
        withoutStop(text) + (advice.map { "; \($0)" } ?? "")
    }

    /// Returns the text of an error for the description of another one, which names `input` already: one line without a
    /// full stop at the end.
    package static func nested(_ error: any Error, about input: String) -> String {
        if let error = error as? any ErrorWithInput, let named = error.namedInput, isSame(named, as: input) {
            return withoutStop(error.textWithoutInput)
        }
        let lines = whole(error).split(whereSeparator: \.isNewline)
            .map { $0.drop(while: \.isWhitespace) }.filter { !$0.isEmpty }
        let text = withoutStop(lines.joined(separator: " "))
        return input.isEmpty || !text.hasPrefix("\(input): ") ? text : String(text.dropFirst(input.count + 2))
    }

    private static func whole(_ error: any Error) -> String {
        if error is CancellationError { return "it was cancelled" }
        if let text = (error as? any LocalizedError)?.errorDescription { return text }
        let text = String(describing: error)
        return foundationText(text) ?? text
    }

    /// Returns the message in the description of an error of Foundation, or the code if it has no message. The text is
    /// `Error Domain=… Code=… "message"UserInfo={…}`, and its dictionary repeats the path and the message.
    private static func foundationText(_ text: String) -> String? {
        let parts = text.split(separator: "\"", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].hasPrefix("Error Domain=") else { return nil }
        return String(parts[1] == "(null)" ? parts[0].dropLast() : parts[1])
    }

    /// Whether a description with `input` names `named` as well, which can be a part of a key or a shortened URL.
    private static func isSame(_ named: String, as input: String) -> Bool {
        named.isEmpty || input.contains(named) || shortened(named) == shortened(input)
    }
}
