import Foundation
import VitrineModels

// The types of the present release.

@Persistable(version: "1.2.0", extensible: true) class Foo {
    var string: String
    var date: Date?
    var number = 0
    var bar: Bar?
    weak var parent: Foo?
    @Transient var timesShown = 0

    init(_ string: String) { self.string = string }

    @Migration(to: "1.1.0") static func rename(_ old: MigrationData) throws {
        old.rename("title", to: "string")
        try old.convert("date") { (seconds: Double) in Date(timeIntervalSince1970: seconds) }
    }

    /// Moves the number out of the bar.
    @Migration(to: "1.2.0") static func takeNumber(_ old: MigrationData) throws {
        guard let bar = try old.value("bar", as: MigrationData.self) else { return }
        old.set("number", to: try bar.value("count", as: Int.self))
        bar.remove("count")
    }
}

@Persistable class SubFoo: Foo {
    var tags: Set<String> = []
    var friends: [Foo] = []
}

@Persistable(version: "1.2.0") struct Bar {
    var name: String
    var color = Color.red
}

enum Color: String, PersistentValue { case red, green }

extension Foo {
    @ExtensionProperty(category: "Sync") var etag: String?
}
