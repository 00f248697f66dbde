#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Persistable`: the conformance of a struct, enum or class to `PersistentRecord` or `PersistentObject`.
///
/// Code with type names is generated as members, where the names have their meaning. The conformance is in an
/// extension, and so is the initializer of structs, which keeps their memberwise initializer.
///
/// The declarations are plain text. The compiler parses them, and parsing and formatting them here as well takes longer
/// than everything else, because swift-syntax is not optimized in debug builds.
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

    /// Returns whether a class has a persistable superclass. The compiler passes no protocols in that case.
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

    /// Returns a declaration from its text.
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

/// `@Persisted`, `@Transient` and `@Migration`: markers that `@Persistable` reads.
public struct MarkerMacro: PeerMacro {
    public static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] { [] }
}

/// The bodies of the generated functions, line by line.
fileprivate extension Model {
    var nameExpression: String {
        if let persistentName { return "\"\(persistentName)\"" }
        guard !genericParameters.isEmpty else { return "\"\(name)\"" }
        let arguments = genericParameters.map { "\\(\($0).persistentTypeName)" }
        return "\"\(name)<\(arguments.joined(separator: ", "))>\""
    }

    var describeBody: [String] {
        var header = ["version: \(version)"]
        if let superclass { header.append("superclass: \(superclass).self") }
        if isExtensible { header.append("isExtensible: true") }
        if !steps.isEmpty {
            let list = steps.map { "VitrineModels.MigrationStep(to: \($0.version), Self.\($0.function))" }
            header.append("steps: [\(list.joined(separator: ", "))]")
        }
        if let aliases { header.append("renamedFrom: \(aliases)") }
        return ["record.header(\(header.joined(separator: ", ")))"] + properties.map(describe) + cases.map(describe)
    }

    private func describe(_ property: Property) -> String {
        var arguments = ["\"\(property.key)\""]
        if let type = property.type { arguments.append("\(Self.stored(type)).self") }
        if property.isLate { arguments.append("late: true") }
        if !property.aliases.isEmpty {
            arguments.append("renamedFrom: [\(property.aliases.map { "\"\($0)\"" }.joined(separator: ", "))]")
        }
        guard let initial = property.initial else { return "record.property(\(arguments.joined(separator: ", ")))" }
        return "record._property(\((arguments + ["default: \(initial)"]).joined(separator: ", ")))"
    }

    private func describe(_ element: EnumCaseElementSyntax) -> String {
        let payload = Self.payload(element).map { "(\"\($0.label ?? "_\($0.index)")\", \($0.type).self)" }
        let name = element.name.text.filter { $0 != "`" }
        return "record.case(\"\(name)\"\(payload.isEmpty ? "" : ", [\(payload.joined(separator: ", "))]"))"
    }

    /// Returns the stored type of a property. `T!` is stored as `T?`.
    private static func stored(_ type: TypeSyntax) -> String {
        if let unwrapped = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
            return "\(unwrapped.wrappedType.trimmedDescription)?"
        }
        return type.trimmedDescription
    }

    private static func payload(_ element: EnumCaseElementSyntax) -> [(index: Int, label: String?, type: String)] {
        (element.parameterClause?.parameters ?? []).enumerated().map { index, parameter in
            let label = parameter.firstName.flatMap { $0.text == "_" ? nil : $0.text }
            return (index, label, parameter.type.trimmedDescription)
        }
    }

    // MARK: Writing

    var persistBody: [String] {
        switch kind {
        case .enumeration:
            guard !cases.isEmpty else { return [] }
            return ["switch self {"] + cases.enumerated().flatMap { persist($0.offset, $0.element) } + ["}"]
        case .structure where isEmpty: return ["writer.write(case: 0)"]
        case .structure, .object:
            var lines = early.map { "writer.write(self.\($0.name))" }
            if inherits { lines.append("super.persistProperties(to: &writer)") }
            lines += late.map { "writer.write(self.\($0.name))" }
            if isExtensible { lines.append("writer.write(self.persistentExtensions)") }
            return lines
        }
    }

    private func persist(_ number: Int, _ element: EnumCaseElementSyntax) -> [String] {
        let values = Self.payload(element).map { "value\($0.index)" }
        let pattern = values.isEmpty ? "" : "(\(values.map { "let \($0)" }.joined(separator: ", ")))"
        return ["case .\(element.name.text)\(pattern):", "writer.write(case: \(number))"]
            + values.map { "writer.write(\($0))" }
    }

    // MARK: Reading

    var restoreBody: [String] {
        switch kind {
        case .enumeration:
            return ["switch try reader.readCase() {"]
                + cases.enumerated().flatMap { restore($0.offset, $0.element) }
                + ["case let number: throw .malformed(\"\(name) has no case \\(number)\")", "}"]
        case .structure where isEmpty: return ["_ = try reader.readCase()"]
        case .structure:
            // Types are inferred, because their names can have another meaning in an extension.
            var lines = early.map { "self.\($0.name) = try reader.read()" }
            if isExtensible { lines.append(Self.readExtensions) }
            return lines
        case .object:
            var lines = early.map { read($0) }
            if inherits {
                lines.append("try super.init(restoring: &reader)")
            } else {
                lines += ["reader.register(self)", "try self._restoreLateProperties(from: &reader)"]
            }
            return lines
        }
    }

    private static let readExtensions = "self.persistentExtensions = try reader.read()"

    private func read(_ property: Property) -> String {
        "self.\(property.name) = try reader.read(\(property.type.map { "\(Self.stored($0)).self" } ?? ""))"
    }

    private func restore(_ number: Int, _ element: EnumCaseElementSyntax) -> [String] {
        let payload = Self.payload(element)
        guard !payload.isEmpty else { return ["case \(number): self = .\(element.name.text)"] }
        let values = payload.map { "\($0.label.map { "\($0): " } ?? "")value\($0.index)" }
        return ["case \(number):"] + payload.map { "let value\($0.index) = try reader.read(\($0.type).self)" }
            + ["self = .\(element.name.text)(\(values.joined(separator: ", ")))"]
    }

    var restoreLateBody: [String] {
        var lines = inherits ? ["try super._restoreLateProperties(from: &reader)"] : []
        lines += late.map { read($0) }
        if isExtensible { lines.append(Self.readExtensions) }
        return lines
    }

    // MARK: Comparing

    private var compared: [String] { properties.map(\.name) + (isExtensible ? ["persistentExtensions"] : []) }

    var objectEqualsBody: [String] {
        var terms = inherits ? ["super.persistentEquals(other)"] : []
        terms += compared.map { "self.\($0) == object.\($0)" }
        let result = "return \(terms.isEmpty ? "true" : terms.joined(separator: " && "))"
        return compared.isEmpty ? [result] : ["guard let object = other as? \(name) else { return false }", result]
    }

    var objectHashBody: [String] {
        (inherits ? ["super.persistentHash(into: &hasher)"] : []) + compared.map { "hasher.combine(self.\($0))" }
    }

    var structEqualsBody: [String] {
        let terms = compared.map { "first.\($0) == second.\($0)" }
        return ["return \(terms.isEmpty ? "true" : terms.joined(separator: " && "))"]
    }

    var structHashBody: [String] { compared.map { "hasher.combine(self.\($0))" } }
}
#endif
