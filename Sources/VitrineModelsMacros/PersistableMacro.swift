#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Persistable`: the conformance of a struct, enum or class to `PersistentRecord` or `PersistentObject`.
///
/// What names types is generated as members, so that names mean what they mean there; the conformance, and the
/// initializer of structs, which must not displace the memberwise one, in an extension.
///
/// The declarations are text: the compiler parses what it gets anyway, and parsing and formatting it here before cost
/// more than all the rest, where swift-syntax is not optimised.
public struct PersistableMacro: MemberMacro, ExtensionMacro {
    public static var formatMode: FormatMode { .disabled }

    public static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        let inherits = inherits(declaration, protocols)
        guard
            let model = ModelReader.model(
                of: declaration, node, inherits: inherits, isReporting: true, in: context)
        else { return [] }
        return model.kind == .object ? objectMembers(model) : valueMembers(model)
    }

    public static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        let inherits = inherits(declaration, protocols)
        guard
            let model = ModelReader.model(
                of: declaration, node, inherits: inherits, isReporting: false, in: context),
            !model.inherits
        else { return [] }
        let isolation = model.isActor ? "@MainActor " : ""
        // A class names all protocols the macro declares: the compiler looks them up when it meets a subclass.
        let names = model.kind == .object ? ["PersistentObject", "PersistentRecord"] : ["PersistentRecord"]
        let conformances = names.map { "\(isolation)VitrineModels.\($0)" }.joined(separator: ", ")
        let initializer = model.kind == .structure ? [Self.declaration(indented(restoring(model)))] : []
        return [
            ExtensionDeclSyntax(
                extensionKeyword: .keyword(.extension, trailingTrivia: .space),
                extendedType: IdentifierTypeSyntax(name: .identifier("\(type.trimmedDescription): \(conformances) ")),
                memberBlock: MemberBlockSyntax(
                    leftBrace: .leftBraceToken(trailingTrivia: .newline),
                    members: MemberBlockItemListSyntax(initializer.map { MemberBlockItemSyntax(decl: $0) }),
                    rightBrace: .rightBraceToken(leadingTrivia: .newline)))
        ]
    }

    /// Whether a class has a persistable superclass: the compiler then passes no protocols to conform to.
    private static func inherits(_ declaration: some DeclGroupSyntax, _ protocols: [TypeSyntax]) -> Bool {
        guard let object = declaration.as(ClassDeclSyntax.self), object.inheritanceClause != nil else { return false }
        return !protocols.contains { $0.trimmedDescription.hasSuffix("PersistentObject") }
    }

    // MARK: Members

    private static func valueMembers(_ model: Model) -> [DeclSyntax] {
        let access = model.access
        var members = storage(model)
        members.append(Self.declaration("\(access)static var persistentName: String { \(model.nameExpression) }"))
        members.append(
            function("\(access)static func describe(in record: inout VitrineModels.RecordBuilder)", model.describeBody))
        members.append(persisting(model, ""))
        if model.kind == .enumeration { members.append(Self.declaration(restoring(model))) }
        if model.hasTransients, model.kind == .structure {
            members.append(
                function("\(access)static func == (first: Self, second: Self) -> Bool", model.structEqualsBody))
            members.append(function("\(access)func hash(into hasher: inout Hasher)", model.structHashBody))
        }
        return members
    }

    private static func objectMembers(_ model: Model) -> [DeclSyntax] {
        let prefix = model.access + (model.inherits ? "override " : "")
        let type = model.isFinal && !model.inherits ? "static" : "class"
        var members = storage(model)
        members.append(Self.declaration("\(prefix)\(type) var persistentName: String { \(model.nameExpression) }"))
        members.append(
            function(
                "\(prefix)\(type) func describe(in record: inout VitrineModels.RecordBuilder)", model.describeBody))
        members.append(persisting(model, model.inherits ? "override " : ""))
        if model.hasOwnInitializer { members.append(Self.declaration(restoring(model))) }
        if !model.inherits, !model.declaresInitializer, model.hasDefaultsOnly {
            members.append(Self.declaration("\(model.closedAccess)init() {}"))
        }
        if !model.inherits || model.hasLate {
            members.append(
                function("\(prefix)func _restoreLateProperties(\(reader)) \(failing)", model.restoreLateBody))
        }
        members.append(function("\(prefix)func persistentEquals(_ other: AnyObject) -> Bool", model.objectEqualsBody))
        members.append(function("\(prefix)func persistentHash(into hasher: inout Hasher)", model.objectHashBody))
        return members
    }

    private static let reader = "from reader: inout VitrineModels.BinaryReader"
    private static let failing = "throws(VitrineModels.PersistenceError)"

    private static func storage(_ model: Model) -> [DeclSyntax] {
        guard model.isExtensible else { return [] }
        return [Self.declaration("\(model.closedAccess)var persistentExtensions = VitrineModels.ExtensionStorage()")]
    }

    private static func persisting(_ model: Model, _ override: String) -> DeclSyntax {
        function(
            "\(model.access)\(override)func persistProperties(to writer: inout VitrineModels.BinaryWriter)",
            model.persistBody)
    }

    private static func restoring(_ model: Model) -> String {
        let required = model.kind == .object ? "required " : ""
        let parameter = "restoring reader: inout VitrineModels.BinaryReader"
        return text("\(model.closedAccess)\(required)init(\(parameter)) \(failing)", model.restoreBody)
    }

    private static func function(_ signature: String, _ body: [String]) -> DeclSyntax {
        declaration(text(signature, body))
    }

    /// A declaration of which only the text is of interest.
    private static func declaration(_ text: String) -> DeclSyntax {
        DeclSyntax(MissingDeclSyntax(placeholder: .identifier(text)))
    }

    private static func text(_ signature: String, _ body: [String]) -> String {
        ([signature + " {"] + body.map(indented) + ["}"]).joined(separator: "\n")
    }

    private static func indented(_ text: String) -> String {
        text.split(separator: "\n").map { "    " + $0 }.joined(separator: "\n")
    }
}

/// `@Persisted`, `@Transient` and `@Migration`: marks that `@Persistable` reads.
public struct MarkerMacro: PeerMacro {
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}
#endif
