#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@ExtensionProperty`: the key of a property and accessors that use the storage of the extensible type.
public struct ExtensionPropertyMacro: AccessorMacro, PeerMacro {
    private struct Parts {
        let name: String
        let type: TypeSyntax
        let initial: ExprSyntax
        let access: String
    }

    public static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let parts = parts(declaration, Complaints(context: context, isReporting: true)) else { return [] }
        return [
            "get { persistentExtensions[Self._extensionKey_\(raw: parts.name)] }",
            "set { persistentExtensions[Self._extensionKey_\(raw: parts.name)] = newValue }",
        ]
    }

    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let parts = parts(declaration, Complaints(context: context, isReporting: false)) else { return [] }
        let key = node.argument(nil)?.text ?? parts.name
        let category = node.argument("category")?.text ?? ""
        return [
            """
            \(raw: parts.access)static var _extensionKey_\(raw: parts.name): VitrineModels.ExtensionKey<\(parts.type)> {
                VitrineModels.ExtensionKey(\(literal: key), category: \(literal: category), default: \(parts.initial))
            }
            """
        ]
    }

    private static func parts<Context>(
        _ declaration: some DeclSyntaxProtocol, _ complaints: Complaints<Context>
    ) -> Parts? {
        guard let variable = declaration.as(VariableDeclSyntax.self), variable.bindings.count == 1,
            let binding = variable.bindings.first,
            let identifier = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier
        else {
            complaints.report(
                Complaint("@ExtensionProperty can only be attached to a single property", "one"), at: declaration)
            return nil
        }
        if let scope = complaints.context.lexicalContext.first, !scope.is(ExtensionDeclSyntax.self) {
            complaints.report(
                Complaint(
                    "@ExtensionProperty can only be used in an extension; declare a stored property here",
                    "not-extension"),
                at: declaration)
            return nil
        }
        guard let type = binding.typeAnnotation?.type.trimmed else {
            complaints.report(Complaint("@ExtensionProperty '\(identifier.text)' needs a type", "type"), at: identifier)
            return nil
        }
        let nothing: ExprSyntax? = type.is(OptionalTypeSyntax.self) ? "nil" : nil
        guard let initial = binding.initializer?.value.trimmed ?? nothing else {
            complaints.report(
                Complaint(
                    "@ExtensionProperty '\(identifier.text)' needs a default value or an optional type", "default"),
                at: identifier)
            return nil
        }
        let access = variable.modifiers.contains("private") ? "private " : variable.modifiers.access
        return Parts(name: identifier.text, type: type, initial: initial, access: access)
    }
}
#endif
