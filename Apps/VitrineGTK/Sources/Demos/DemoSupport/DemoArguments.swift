import Foundation

/// The command-line arguments of a demo: options that start with `--`, and the rest.
package struct DemoArguments: Sendable {
    /// The usage text of the common options.
    package static let common = """
          --auto            drive it, print what was measured, and end
          --shot FILE       write the window to a PNG file; without --auto that is all
          --size WxH        the window's size in points
        """

    private var values: [String: String] = [:]
    /// The arguments that are not options.
    package private(set) var rest: [String] = []

    /// Parses the arguments. Prints the usage and exits after `--help` or an error.
    ///
    /// - Parameters:
    ///   - usage: The usage text.
    ///   - options: The options with a value, in addition to the common ones.
    ///   - flags: The options without a value.
    package init(usage: String, options: Set<String> = [], flags: Set<String> = []) {
        let options = options.union(["--shot", "--size"]), flags = flags.union(["--auto", "--help"])
        var words = CommandLine.arguments.dropFirst()
        while let word = words.popFirst() {
            if flags.contains(word) {
                values[word] = ""
            } else if options.contains(word), let value = words.popFirst() {
                values[word] = value
            } else if word.hasPrefix("--") {
                Self.end("\(word): unknown option or missing value\n\n\(usage)\n\(Self.common)", 2)
            } else {
                rest.append(word)
            }
        }
        if has("--help") { Self.end("\(usage)\n\(Self.common)", 0) }
    }

    package func has(_ option: String) -> Bool { values[option] != nil }
    package subscript(option: String) -> String? { values[option] }
    package func number(_ option: String, default value: Int) -> Int { self[option].flatMap { Int($0) } ?? value }

    /// The size of the window, in points.
    func size(default size: (Int, Int)) -> (Int, Int) {
        let sides = (self["--size"] ?? "").split(separator: "x").compactMap { Int($0) }
        return sides.count == 2 ? (sides[0], sides[1]) : size
    }

    /// Prints a message and exits.
    package static func end(_ message: String, _ status: Int32) -> Never {
        FileHandle.standardError.write(Data((message + "\n").utf8))
        exit(status)
    }
}
