#if Macros
import SwiftSyntax

extension AttributeListSyntax {
    /// The attribute of this name.
    func named(_ name: String) -> AttributeSyntax? {
        for case .attribute(let attribute) in self where attribute.attributeName.trimmedDescription == name {
            return attribute
        }
        return nil
    }
}

extension AttributeSyntax {
    /// The argument with this label; the one without a label for nil.
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

    /// The access level among the modifiers, with a space, for what is generated beside; empty for none.
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

/// Versions as numbers separated by dots.
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
#endif
