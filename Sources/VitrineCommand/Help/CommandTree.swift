import ArgumentParser

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
