import ArgumentParser
import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A subcommand with its arguments, as the argument parser describes it in JSON (`--experimental-dump-help`).
///
/// Manual pages are made from it, so that they cannot differ from `--help`.
struct CommandTree: Decodable {
    struct Argument: Decodable {
        enum Kind: String, Decodable {
            case positional, option, flag
        }

        struct Name: Decodable {
            enum Kind: String, Decodable {
                case long, short, longWithSingleDash
            }

            let kind: Kind
            let name: String

            var text: String { (kind == .long ? "--" : "-") + name }
        }

        let kind: Kind
        let shouldDisplay: Bool
        let sectionTitle: String?
        let isOptional: Bool
        let isRepeating: Bool
        let names: [Name]?
        let preferredName: Name?
        let valueName: String?
        let defaultValue: String?
        let allValues: [String]?
        let abstract: String?
        let discussion: String?

        /// Whether every command has it.
        var isCommon: Bool { ["help", "version"].contains(preferredName?.name) }
    }

    let commandName: String
    let superCommands: [String]?
    let shouldDisplay: Bool?
    let abstract: String?
    let discussion: String?
    let subcommands: [CommandTree]?
    let arguments: [Argument]?

    /// `vitrine` with all that is below it.
    ///
    /// - Throws: `DecodingError` if the argument parser has changed its description.
    static func root() throws -> CommandTree {
        struct Tool: Decodable {
            let command: CommandTree
        }
        return try JSONDecoder().decode(Tool.self, from: Data(VitrineTool._dumpHelp().utf8)).command
    }

    /// The subcommands that are documented. The parser's own `help` is not among them.
    var shown: [CommandTree] {
        (subcommands ?? []).filter { $0.shouldDisplay ?? true && $0.commandName != "help" }
    }

    /// The words that start the command.
    var path: [String] { (superCommands ?? []) + [commandName] }

    /// A word in the place of a subcommand that is none.
    struct UnknownCommand {
        let word: String
        /// The words before it, such as `vitrine cache`.
        let path: [String]
        /// The subcommand with the most similar name; nil if none is similar.
        let suggestion: String?

        var message: String {
            let start = "“\(Printable.line(word))” is no command of \(path.joined(separator: " "))"
            return start + (suggestion.map { "; did you mean “\($0)”?" } ?? "")
        }
    }

    /// Returns the first word that stands in the place of a subcommand and is none; nil if all are known. `help` goes
    /// before the command that it is about.
    static func unknownCommand(
        in words: [String], below root: any ParsableCommand.Type = VitrineTool.self
    ) -> UnknownCommand? {
        var command = root
        var path = [root.configuration.commandName ?? ""]
        for (index, word) in words.enumerated() {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, command.configuration.defaultSubcommand == nil, !word.hasPrefix("-") else {
                return nil
            }
            if index == 0, word == "help" { continue }
            let names = subcommands.compactMap { $0.configuration.commandName }
            guard let next = subcommands.first(where: { $0.configuration.commandName == word }) else {
                let similar = names.map { (name: $0, distance: EditDistance.between(word, $0)) }
                    .min { $0.distance < $1.distance }
                let isSimilar = similar.map { $0.distance <= max(1, min(word.count, $0.name.count) / 3) } ?? false
                return UnknownCommand(word: word, path: path, suggestion: isSimilar ? similar?.name : nil)
            }
            command = next
            path.append(word)
        }
        return nil
    }

    /// Returns the words that start a command, such as `vitrine cache get`.
    static func path(
        to type: any ParsableCommand.Type, below root: any ParsableCommand.Type = VitrineTool.self
    ) -> [String]? {
        let name = root.configuration.commandName ?? ""
        if root == type { return [name] }
        for subcommand in root.configuration.subcommands {
            if let path = path(to: type, below: subcommand) { return [name] + path }
        }
        return nil
    }
}

/// How different two words are.
enum EditDistance {
    /// Returns the least number of letters that are inserted, deleted, replaced or swapped with their neighbour to make
    /// one word of the other (Damerau–Levenshtein, restricted).
    static func between(_ first: String, _ second: String) -> Int {
        let first = Array(first.prefix(64)), second = Array(second.prefix(64))
        var before: [Int] = []
        var row = Array(0...second.count)
        for (i, letter) in first.enumerated() {
            var next = [i + 1]
            for (j, other) in second.enumerated() {
                var least = min(row[j + 1] + 1, next[j] + 1, row[j] + (letter == other ? 0 : 1))
                if i > 0, j > 0, letter == second[j - 1], first[i - 1] == other {
                    least = min(least, before[j - 1] + 1)
                }
                next.append(least)
            }
            (before, row) = (row, next)
        }
        return row[second.count]
    }
}
