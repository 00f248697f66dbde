import Foundation

/// The rules for the descriptions of errors, which people read.
public enum ErrorTextRule {
    /// Returns the rules that the description of an error breaks; none if it keeps all.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - input: The path, URL, key or name that it concerns. A description names it once, or not at all.
    ///   - isSentence: Whether it ends with a full stop. Lines `input: reason` do not.
    public static func violations(
        of error: some Error & CustomStringConvertible, input: String, isSentence: Bool = true
    ) -> [String] {
        let text = error.description
        var broken: [String] = []
        if error.localizedDescription != text { broken.append("another text: \(error.localizedDescription)") }
        if "\(error)" != text { broken.append("another text: \(error)") }
        if text.contains(where: \.isNewline) { broken.append("several lines") }
        if text.contains("..") || text.contains(". .") || text.contains(".;") { broken.append("two full stops") }
        if text.hasSuffix(".") != isSentence { broken.append(isSentence ? "no full stop" : "a full stop") }
        if text.components(separatedBy: input).count > 2 { broken.append("the input twice") }
        return broken.map { "\(text): \($0)" }
    }
}
