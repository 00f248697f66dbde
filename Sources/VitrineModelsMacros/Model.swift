#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// The description of a type that `@Persistable` reads from its declaration.
struct Model {
    enum Kind { case structure, enumeration, object }

    /// A stored property.
    struct Property {
        let name: String
        /// The name under which the property is stored.
        let key: String
        let aliases: [String]
        /// The declared type; nil if it is inferred from the initial value.
        let type: TypeSyntax?
        let initial: ExprSyntax?
        /// Whether the property is read after the object exists.
        var isLate: Bool
    }

    /// A migration step: the text of the version, and the function.
    struct Step {
        let version: String
        let function: String
    }

    let kind: Kind
    let name: String
    let genericParameters: [String]
    /// The access level of generated code, followed by a space.
    let access: String
    let isFinal: Bool
    /// The superclass, if it is persistable.
    let superclass: String?
    var persistentName: String?
    var version: ExprSyntax = "\"1\""
    var aliases: ExprSyntax?
    var isExtensible = false
    var isActor = false
    var properties: [Property] = []
    var cases: [EnumCaseElementSyntax] = []
    var steps: [Step] = []
    var hasTransients = false
    var declaresInitializer = false
    var hasDefaultsOnly = true

    var inherits: Bool { superclass != nil }
    var early: [Property] { properties.filter { !$0.isLate } }
    var late: [Property] { properties.filter(\.isLate) }
    /// Whether any property is read after the object exists.
    var hasLate: Bool { isExtensible || !late.isEmpty }
    /// The access level of declarations that cannot be `open`.
    var closedAccess: String { access == "open " ? "public " : access }
    /// Whether the type is a struct without properties, which writes case 0.
    var isEmpty: Bool { kind == .structure && properties.isEmpty && !isExtensible }
    /// Whether the restoring initializer is generated. A subclass without initializers inherits all of them instead.
    var hasOwnInitializer: Bool { !inherits || declaresInitializer }
}

/// Reads a ``Model`` from a declaration, and diagnoses properties that cannot be stored.
struct ModelReader<Context: MacroExpansionContext> {
    private let complaints: Complaints<Context>
    private var model: Model
    private var keys: Set<String> = []

    /// Reads a model.
    ///
    /// - Parameters:
    ///   - inherits: Whether the superclass is persistable.
    ///   - isReporting: Whether diagnostics are emitted. Only one role of the macro emits them.
    static func model(
        of declaration: some DeclGroupSyntax, _ attribute: AttributeSyntax, inherits: Bool, isReporting: Bool,
        in context: Context
    ) -> Model? {
        let complaints = Complaints(context: context, isReporting: isReporting)
        guard
            var reader = ModelReader(
                declaration, attribute: attribute, inherits: inherits, complaints: complaints)
        else {
            complaints.report(
                Complaint("@Persistable can only be attached to a struct, class or enum", "kind"), at: attribute)
            return nil
        }
        for member in declaration.memberBlock.members { reader.read(member.decl) }
        reader.finish()
        return reader.model
    }

    private init?(
        _ declaration: some DeclGroupSyntax, attribute: AttributeSyntax, inherits: Bool,
        complaints: Complaints<Context>
    ) {
        let kind: Model.Kind
        let name: TokenSyntax
        let generics: GenericParameterClauseSyntax?
        if let structure = declaration.as(StructDeclSyntax.self) {
            (kind, name, generics) = (.structure, structure.name, structure.genericParameterClause)
        } else if let enumeration = declaration.as(EnumDeclSyntax.self) {
            (kind, name, generics) = (.enumeration, enumeration.name, enumeration.genericParameterClause)
        } else if let object = declaration.as(ClassDeclSyntax.self) {
            (kind, name, generics) = (.object, object.name, object.genericParameterClause)
        } else {
            return nil
        }
        self.complaints = complaints
        model = Model(
            kind: kind, name: name.text, genericParameters: generics?.parameters.map(\.name.text) ?? [],
            access: declaration.modifiers.access, isFinal: declaration.modifiers.contains("final"),
            superclass: inherits ? declaration.inheritanceClause?.inheritedTypes.first?.type.trimmedDescription : nil)
        model.persistentName = attribute.argument("name")?.text
        model.aliases = attribute.argument("renamedFrom")?.trimmed
        if let version = attribute.argument("version") { model.version = version.trimmed }
        model.isExtensible = attribute.argument("extensible")?.trimmedDescription == "true"
        model.isActor = declaration.attributes.named("MainActor") != nil
        if model.isExtensible, inherits || kind == .enumeration {
            complaints.report(
                Complaint("only a struct or a root class can be extensible; subclasses inherit it", "extensible"),
                at: attribute)
            model.isExtensible = false
        }
    }

    private mutating func read(_ member: DeclSyntax) {
        if let element = member.as(EnumCaseDeclSyntax.self) {
            model.cases += element.elements
        } else if let initializer = member.as(InitializerDeclSyntax.self) {
            if !initializer.modifiers.contains("convenience") { model.declaresInitializer = true }
        } else if let function = member.as(FunctionDeclSyntax.self) {
            readStep(function)
        } else if let variable = member.as(VariableDeclSyntax.self),
            !variable.modifiers.contains("static", "class", "lazy")
        {
            readVariable(variable)
        }
    }

    private mutating func finish() {
        guard model.kind == .object, model.inherits, !model.declaresInitializer else { return }
        for index in model.properties.indices { model.properties[index].isLate = true }
    }

    // MARK: Steps

    private mutating func readStep(_ function: FunctionDeclSyntax) {
        guard let version = function.attributes.named("Migration")?.argument("to") else { return }
        guard function.modifiers.contains("static", "class") else {
            var fixed = function
            fixed.modifiers.append(DeclModifierSyntax(name: .keyword(.static, trailingTrivia: .space)))
            complaints.report(
                Complaint(
                    "@Migration can only be attached to a static function", "migration-static"),
                at: function.name,
                fixIts: [FixIt(Remedy("make it 'static'", "make-static"), replacing: function, with: fixed)])
            return
        }
        if let step = version.text, let type = model.version.text, VersionText.isLater(step, than: type) {
            complaints.report(
                Complaint("this step migrates to \(step), but the type has version \(type)", "migration-order"),
                at: version)
            return
        }
        model.steps.append(Model.Step(version: version.trimmedDescription, function: function.name.text))
    }

    // MARK: Properties

    private mutating func readVariable(_ variable: VariableDeclSyntax) {
        var shared: TypeSyntax?
        var bindings: [(PatternBindingSyntax, TypeSyntax?)] = []
        // `var a, b: Int` shares the type; `var a = 1.5, b: Int` does not.
        for binding in variable.bindings.reversed() {
            if let annotation = binding.typeAnnotation {
                shared = annotation.type.trimmed
            } else if binding.initializer != nil {
                shared = nil
            }
            bindings.append((binding, shared))
        }
        for (binding, type) in bindings.reversed() where !binding.isComputed { read(binding, type: type, variable: variable) }
    }

    private mutating func read(_ binding: PatternBindingSyntax, type: TypeSyntax?, variable: VariableDeclSyntax) {
        guard let identifier = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier else {
            complaints.report(
                Complaint("@Persistable does not support tuple patterns: declare the properties separately", "tuple"),
                at: binding.pattern)
            return
        }
        let name = identifier.text
        let isConstant = variable.bindingSpecifier.text == "let"
        let isOptional =
            type.map { $0.is(OptionalTypeSyntax.self) || $0.is(ImplicitlyUnwrappedOptionalTypeSyntax.self) } ?? false
        let hasValue = binding.initializer != nil || (isOptional && !isConstant)
        if variable.attributes.named("Transient") != nil {
            model.hasTransients = true
            if !hasValue { complainOfTransient(binding, name) }
            return
        }
        if isConstant, binding.initializer != nil {
            let fixed = variable.bindingSpecifier.with(\.tokenKind, .keyword(.var))
            complaints.report(
                Complaint(
                    "'\(name)' always has its initial value and is not stored: make it 'var', or mark it @Transient",
                    "constant", severity: .warning),
                at: identifier,
                fixIts: [
                    FixIt(
                        Remedy("make '\(name)' a 'var'", "make-var"), replacing: variable.bindingSpecifier, with: fixed)
                ])
            model.hasTransients = true
            return
        }
        if variable.modifiers.contains("unowned") || isUnstorable(type) {
            complaints.report(
                Complaint("'\(name)' cannot be stored: mark it @Transient", "type"), at: identifier,
                fixIts: [transientFix(variable)])
            return
        }
        let attribute = variable.attributes.named("Persisted")
        let key = attribute?.argument(nil)?.text ?? name
        guard keys.insert(key).inserted else {
            complaints.report(Complaint("two properties are stored as \"\(key)\"", "duplicate-key"), at: identifier)
            return
        }
        if !hasValue { model.hasDefaultsOnly = false }
        // Setting a property of an existing object would call its observers.
        let isLate = model.kind == .object && !isConstant && hasValue && binding.accessorBlock == nil
        model.properties.append(
            Model.Property(
                name: name, key: key, aliases: attribute?.argument("renamedFrom")?.texts ?? [], type: type,
                initial: binding.initializer?.value.trimmed, isLate: isLate))
    }

    private func isUnstorable(_ type: TypeSyntax?) -> Bool {
        guard let type else { return false }
        return type.is(FunctionTypeSyntax.self) || type.is(SomeOrAnyTypeSyntax.self) || type.is(TupleTypeSyntax.self)
    }

    private func complainOfTransient(_ binding: PatternBindingSyntax, _ name: String) {
        var fixed = binding
        fixed.initializer = InitializerClauseSyntax(
            equal: .equalToken(leadingTrivia: .space, trailingTrivia: .space), value: ExprSyntax("<#default#>"))
        complaints.report(
            Complaint("@Transient '\(name)' needs a default value because it is not stored", "transient-default"),
            at: binding,
            fixIts: [FixIt(Remedy("add a default value", "add-default"), replacing: binding, with: fixed)])
    }

    private func transientFix(_ variable: VariableDeclSyntax) -> FixIt {
        var fixed = variable
        let trivia = variable.leadingTrivia
        fixed.leadingTrivia = []
        let attribute = AttributeSyntax(
            leadingTrivia: trivia, attributeName: IdentifierTypeSyntax(name: .identifier("Transient")),
            trailingTrivia: .space)
        fixed.attributes = AttributeListSyntax([.attribute(attribute)] + Array(fixed.attributes))
        return FixIt(Remedy("mark it @Transient", "make-transient"), replacing: variable, with: fixed)
    }
}
#endif
