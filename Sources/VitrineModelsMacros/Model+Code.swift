#if Macros
import SwiftSyntax

/// The bodies of the generated functions, line by line.
extension Model {
    var nameExpression: String {
        if let persistentName { return "\"\(persistentName)\"" }
        guard !genericParameters.isEmpty else { return "\"\(name)\"" }
        let arguments = genericParameters.map { "\\(VitrineModels.ValueType.name(of: \($0).self))" }
        return "\"\(name)<\(arguments.joined(separator: ", "))>\""
    }

    var describeBody: [String] {
        var header = ["version: \(version)"]
        switch kind {
        case .structure: header.append("kind: .structure")
        case .enumeration: header.append("kind: .enumeration")
        case .object: header.append("kind: .object")
        }
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
        if let initial = property.initial { arguments.append("default: \(initial)") }
        return "record.property(\(arguments.joined(separator: ", ")))"
    }

    private func describe(_ element: EnumCaseElementSyntax) -> String {
        let payload = Self.payload(element).map { "(\"\($0.label ?? "_\($0.index)")\", \($0.type).self)" }
        let name = element.name.text.filter { $0 != "`" }
        return "record.case(\"\(name)\"\(payload.isEmpty ? "" : ", [\(payload.joined(separator: ", "))]"))"
    }

    /// A type without the exclamation mark that values of it are not stored with.
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
        case .structure where isEmpty: return ["writer.write(byte: 0)"]
        case .structure, .object:
            var lines = early.map { "self.\($0.name).persist(to: &writer)" }
            if inherits { lines.append("super.persistProperties(to: &writer)") }
            lines += late.map { "self.\($0.name).persist(to: &writer)" }
            if isExtensible { lines.append("self.persistentExtensions.persist(to: &writer)") }
            return lines
        }
    }

    private func persist(_ number: Int, _ element: EnumCaseElementSyntax) -> [String] {
        let values = Self.payload(element).map { "value\($0.index)" }
        let pattern = values.isEmpty ? "" : "(\(values.map { "let \($0)" }.joined(separator: ", ")))"
        return ["case .\(element.name.text)\(pattern):", "writer.write(unsigned: \(number))"]
            + values.map { "\($0).persist(to: &writer)" }
    }

    // MARK: Reading

    var restoreBody: [String] {
        switch kind {
        case .enumeration:
            return ["switch try reader.readUnsigned() {"]
                + cases.enumerated().flatMap { restore($0.offset, $0.element) }
                + ["case let number: throw .malformed(\"\(name) has no case \\(number)\")", "}"]
        case .structure where isEmpty: return ["_ = try reader.readByte()"]
        case .structure:
            // In an extension, where the names of types may mean something else: they are inferred.
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

    private static let readExtensions = "self.persistentExtensions = try VitrineModels.ExtensionStorage(from: &reader)"

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
