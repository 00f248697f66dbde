import TestSupport
import VitrineCore
import VitrineModels

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Follows a plan in a store.
final class Following {
    let store: ObjectStore
    private let path: String
    private var plan: ObjectPlan

    init(_ path: String, seed: Int) throws {
        self.path = path
        store = try ObjectStore(at: path)
        plan = ObjectPlan(seed: UInt64(seed))
    }

    /// Goes on from a step until it is killed, and tells the number of each step when it is done.
    func run(from first: Int) async throws {
        for _ in 0..<first { _ = plan.next() }
        for number in first... {
            try await step(number)
            ModelsChild.report("\(number)")
        }
    }

    /// Does so many steps, and tells each in a file beside the store: who records the changes of files sees when.
    func record(steps: Int) async throws {
        let file = open(path + ".done", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        for number in 0..<steps {
            try await step(number)
            ModelsChild.report("\(number)", to: file)
        }
        close(file)
    }

    /// The next step.
    ///
    /// - Parameter prefix: Before the paths of all groups.
    func step(_ number: Int, below prefix: String = "") async throws {
        func group(_ name: String) -> GroupPath { GroupPath(prefix + name) }
        switch plan.next() {
        case .put(let place): try await store.put(Filled(number), for: place.key, in: group(place.group))
        case .batch(let places):
            try await store.transaction { batch throws(PersistenceError) in
                for place in places { try batch.put(Filled(number), for: place.key, in: group(place.group)) }
            }
        case .remove(let place): try await store.remove(place.key, in: group(place.group))
        case .removeGroup(let name): try await store.removeGroup(group(name))
        }
    }
}

/// What the plan puts: a number and what must go with it.
struct Filled: PersistentRecord {
    let number: Int
    let text: String

    init(_ number: Int) { (self.number, text) = (number, ObjectPlan.text(number)) }

    static let persistentName = "Filled"
    static func describe(in record: inout RecordBuilder) {
        record.header(version: "1")
        record.property("number", Int.self)
        record.property("text", String.self)
    }
    func persistProperties(to writer: inout BinaryWriter) {
        writer.write(number)
        writer.write(text)
    }
    init(restoring reader: inout BinaryReader) throws(PersistenceError) {
        number = try reader.read()
        text = try reader.read()
    }
}
