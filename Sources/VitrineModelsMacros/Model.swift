#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder

/// What `@Persistable` read off one type.
struct Model {
    enum Kind { case structure, enumeration, object }

    /// A stored property.
    struct Property {
        let name: String
        /// What it is stored under.
        let key: String
        let aliases: [String]
        /// As written; nil where the default tells it.
        let type: TypeSyntax?
        let initial: ExprSyntax?
        /// Whether it is read when the object exists.
        var isLate: Bool
    }

    /// A migration step: the version as written, and the function.
    struct Step {
        let version: String
        let function: String
    }

    let kind: Kind
    let name: String
    let genericParameters: [String]
    /// Access of what is generated, with a space.
    let access: String
    let isFinal: Bool
    /// The superclass, if that is persistable.
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
    /// Whether anything is read when the object exists.
    var hasLate: Bool { isExtensible || !late.isEmpty }
    /// Access of what cannot be `open`.
    var closedAccess: String { access == "open " ? "public " : access }
    /// A struct that has to write a byte for nothing.
    var isEmpty: Bool { kind == .structure && properties.isEmpty && !isExtensible }
    /// A subclass without initializers inherits those of its superclass, as long as none is added.
    var hasOwnInitializer: Bool { !inherits || declaresInitializer }
}
#endif
