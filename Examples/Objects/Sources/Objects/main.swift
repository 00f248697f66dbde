// Objects that survive changes of their types: cache and restore, a property of an extension, migration over three
// releases, descriptions, and JSON.
import Foundation
import VitrineModels

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-objects-\(UUID().uuidString)")
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
defer { try? FileManager.default.removeItem(at: directory) }
let path = directory.appending(path: "objects.sqlite").path

/// Opens the store as a release of the program with these types.
func open(_ types: any PersistentRecord.Type...) throws -> ObjectStore {
    let registry = TypeRegistry()
    for type in types { try registry.register(type) }
    return try ObjectStore(at: path, configuration: .init(coder: PersistentCoder(registry: registry)))
}

// Cache and restore.
let cache = try open(Foo.self, SubFoo.self)
let foo = SubFoo("cached")
foo.tags = ["new"]
foo.bar = Bar(name: "inside", color: .green)
let friend = Foo("a friend")
friend.parent = foo
foo.friends = [friend]
foo.etag = "W/1"
try await cache.put(foo, for: "key", in: "demo")
if let restored = try cache.object(SubFoo.self, for: "key", in: "demo") {
    print("restored: equal \(restored == foo),",
        "the friend's parent is it: \(restored.friends[0].parent === restored), etag \(restored.etag ?? "none")")
}
let copy = try foo.persistentCopy()
copy.bar?.color = .red
print("a copy is its own: \(foo.bar?.color == .green)")

// Description.
print(foo)

// Data of earlier releases is migrated when it is read, or for a whole group.
let first = FirstRelease.Foo()
first.title = "from 1.0.0"
first.date = 1_000_000_000
first.bar = FirstRelease.Bar(name: "old", count: 42)
try await open().put(first, for: "first", in: "migration")
let second = SecondRelease.Foo()
second.string = "from 1.1.0"
second.bar = SecondRelease.Bar(name: "old", count: 43)
try await open().put(second, for: "second", in: "migration")
let store = try open(Foo.self, SubFoo.self)
for try await event in store.migrate(Foo.self, in: "migration", dryRun: true) { print("rehearsal:", event) }
for try await event in store.migrate(Foo.self, in: "migration") { print("migration:", event) }
for key in try store.keys(in: "migration") {
    guard let foo = try store.object(Foo.self, for: key, in: "migration") else { continue }
    print(key, foo.string, foo.date?.timeIntervalSince1970 ?? 0, foo.number, foo.bar?.name ?? "no bar")
}

// JSON that can be read back, and verification.
let coder = PersistentCoder()
let json = try foo.bar.map { try coder.json(of: coder.encode($0)) } ?? ""
print("JSON comes back equal: \(try coder.decode(Bar.self, fromJSON: json) == foo.bar)")
print("intact: \(try await store.verify().isIntact)")
