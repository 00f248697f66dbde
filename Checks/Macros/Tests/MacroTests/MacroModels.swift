import Foundation
import Observation
import VitrineModels

// The macro on all kinds of types. The tests include that this file compiles.

@Persistable enum Shape {
    case circle(radius: Double)
    case rectangle(Double, _ height: Double, label: String?)
    case `default`
}
@Persistable indirect enum Term { case number(Int), sum(Term, Term), negative(of: Term) }
enum Tint: String, PersistentValue { case red, green }
@Persistable struct Tag: Sendable {
    var name = "untitled"
    var weight: Int32
    let id: UUID
    var tint: Tint?
}
@Persistable struct Nothing {}
@Persistable struct Box<Value: PersistentValue> {
    var value: Value
    var more: [Value] = []
}
@Persistable struct Tree {
    var value: Int
    var children: [Tree] = []
}
@Persistable struct Several { var a, b: Int; var c = 1.5, d: [Int?] = [1, nil] }
@Persistable(version: "2", renamedFrom: ["OldRenamed"]) struct Renamed: Codable {
    @Persisted("user_name", renamedFrom: ["title", "headline"]) var name: String
    @Transient var cache: [Int] = []
}
enum Outer {
    struct Part: Hashable {}
    @Persistable(name: "Outer.Inner", extensible: true) struct Inner { var x: Int }
}
extension Outer.Inner { @ExtensionProperty var y: Int = 7 }

@propertyWrapper struct Clamped {
    private var value: Int
    private let range: ClosedRange<Int>
    var wrappedValue: Int {
        get { value }
        set { value = min(max(newValue, range.lowerBound), range.upperBound) }
    }
    init(wrappedValue: Int, _ range: ClosedRange<Int>) {
        self.range = range
        value = min(max(wrappedValue, range.lowerBound), range.upperBound)
    }
}

@Persistable(version: "1.1", extensible: true) open class Vehicle {
    public let id: UUID
    public private(set) var wheels: Int
    @Clamped(0...10) var gear: Int = 1
    private var secret = "s"
    public var observed = 0 { didSet { changes += 1 } }
    weak var trailer: Vehicle?
    @Transient var changes = 0
    var twice: Int { wheels * 2 }

    public init(wheels: Int) {
        id = UUID()
        self.wheels = wheels
    }

    func tell(_ text: String) { secret = text }

    @Migration(to: "1.1") static func count(_ old: MigrationData) throws {
        try old.convert("axles", to: "wheels") { (axles: Int) in axles * 2 }
    }
}
/// Declares no initializer, so it inherits those of its superclass.
@Persistable class Car: Vehicle {
    var brand = "?"
    var spare: Vehicle?
}
@Persistable final class Sports: Car {
    let power: Int
    init(power: Int) {
        self.power = power
        super.init(wheels: 4)
    }
}
extension Vehicle { @ExtensionProperty(category: "Sync") public var etag: String? }

@Persistable final class Defaults {
    var a = 1
    var b: String?
}
@MainActor @Persistable final class OnMainActor { var a = 1 }
@Persistable @Observable final class Observed {
    var count = 1
    var name: String?
    init() {}
}

/// Has one migration function for all older versions.
@Persistable(version: "2") struct Hooked {
    var sum = 0

    @Migration(to: "2") static func migrate(_ old: MigrationData, from version: SchemaVersion) throws -> Bool {
        guard version >= "1" else { return false }
        old.set("sum", to: try 1 + (old.value("a") ?? 0))
        return true
    }
}

/// Types of an earlier build.
enum Earlier {
    @Persistable(name: "Hooked") struct Hooked { var a = 3 }
    @Persistable(version: "0.1", name: "Hooked") struct Oldest { var a = 3 }
    @Persistable(version: "1.0", name: "Vehicle") final class Vehicle {
        let id: UUID
        var axles = 3
        init() { id = UUID() }
    }
}

/// Two classes with the macro, and the same ones as lists of key paths.
enum Generated {
    @Persistable(version: "1.1", name: "Note", extensible: true) class Note {
        var title = ""
        weak var parent: Note?
    }
    @Persistable(name: "SubNote") class SubNote: Note {
        var tags: [String] = []
    }
}
enum Listed {
    class Note: KeyPathObject {
        var title = ""
        weak var parent: Note?
        var persistentExtensions = ExtensionStorage()
        required init() {}

        class var persistentSchema: ObjectSchema {
            ObjectSchema(Note.self, version: "1.1", properties: [
                .property("title", \.title), .property("parent", \.parent), .extensions(\.persistentExtensions),
            ])
        }
    }
    class SubNote: Note {
        var tags: [String] = []

        override class var persistentSchema: ObjectSchema {
            ObjectSchema(SubNote.self, properties: [.property("tags", \.tags)])
        }
    }
}
