#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

extension AttributeListSyntax {
    /// Returns the attribute with a name.
    func named(_ name: String) -> AttributeSyntax? {
        for case .attribute(let attribute) in self where attribute.attributeName.trimmedDescription == name {
            return attribute
        }
        return nil
    }
}

extension AttributeSyntax {
    /// Returns the argument with a label, or the argument without a label for nil.
    func argument(_ label: String?) -> ExprSyntax? {
        guard case .argumentList(let arguments) = arguments else { return nil }
        return arguments.first { $0.label?.text == label }?.expression
    }
}

extension ExprSyntax {
    /// The text of a literal without interpolations.
    var text: String? { self.as(StringLiteralExprSyntax.self)?.representedLiteralValue }

    /// The texts of a literal or of an array of literals.
    var texts: [String] {
        if let text { return [text] }
        return self.as(ArrayExprSyntax.self)?.elements.compactMap { $0.expression.text } ?? []
    }
}

extension DeclModifierListSyntax {
    func contains(_ words: String...) -> Bool { contains { words.contains($0.name.text) } }

    /// The access level among the modifiers, followed by a space; empty without one.
    var access: String {
        first { ["open", "public", "package", "fileprivate"].contains($0.name.text) && $0.detail == nil }
            .map { $0.name.text + " " } ?? ""
    }
}

extension PatternBindingSyntax {
    /// Whether the binding is computed.
    var isComputed: Bool {
        switch accessorBlock?.accessors {
        case .getter: true
        case .accessors(let list):
            list.contains { ["get", "_read", "unsafeAddress"].contains($0.accessorSpecifier.text) }
        case nil: false
        }
    }
}

/// Comparison of versions, which are numbers separated by dots.
enum VersionText {
    static func isLater(_ first: String, than second: String) -> Bool {
        numbers(second).lexicographicallyPrecedes(numbers(first))
    }

    private static func numbers(_ text: String) -> [Int] {
        var numbers = text.split(separator: ".").map { Int($0) ?? 0 }
        while numbers.last == 0, numbers.count > 1 { numbers.removeLast() }
        return numbers
    }
}

/// A diagnostic of the macros.
struct Complaint: DiagnosticMessage {
    let message: String
    private let identifier: String
    let severity: DiagnosticSeverity

    init(_ message: String, _ identifier: String, severity: DiagnosticSeverity = .error) {
        (self.message, self.identifier, self.severity) = (message, identifier, severity)
    }

    var diagnosticID: MessageID { MessageID(domain: "VitrineModels", id: identifier) }
}

/// The title of a fix-it.
struct Remedy: FixItMessage {
    let message: String
    private let identifier: String

    init(_ message: String, _ identifier: String) { (self.message, self.identifier) = (message, identifier) }

    var fixItID: MessageID { MessageID(domain: "VitrineModels", id: identifier) }
}

extension FixIt {
    /// Creates a fix-it that replaces a node.
    init(_ remedy: Remedy, replacing old: some SyntaxProtocol, with new: some SyntaxProtocol) {
        self.init(message: remedy, changes: [.replace(oldNode: Syntax(old), newNode: Syntax(new))])
    }
}

/// Emits diagnostics in one role of a macro, and drops them in the others.
struct Complaints<Context: MacroExpansionContext> {
    let context: Context
    let isReporting: Bool

    func report(_ complaint: Complaint, at node: some SyntaxProtocol, fixIts: [FixIt] = []) {
        guard isReporting else { return }
        context.diagnose(Diagnostic(node: Syntax(node), message: complaint, fixIts: fixIts))
    }
}
#endif
