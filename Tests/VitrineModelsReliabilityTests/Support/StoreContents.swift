import Foundation
import TestSupport
import Testing
import VitrineDatabase
import VitrineCore
import VitrineModels

/// What a store holds, read without the code of its types.
enum StoreContents {
    /// A store as another process would open it.
    static func open(_ path: String) throws -> ObjectStore {
        try ObjectStore(
            at: path, configuration: .init(coder: PersistentCoder(registry: TypeRegistry())))
    }

    /// The number of each object that `ModelsChild` put, and nothing that it did not.
    ///
    /// - Parameter prefix: Before the paths of all groups that are looked at; it is left out of the state.
    static func state(of store: ObjectStore, below prefix: String = "") throws -> ObjectPlan.State {
        var state = ObjectPlan.State()
        for group in try store.groups() where group.path.hasPrefix(prefix) {
            for key in try store.keys(in: group) {
                let place = ObjectPlan.Place(group: String(group.path.dropFirst(prefix.count)), key: key)
                state[place] = try number(of: store, key, group)
            }
        }
        return state
    }

    /// The number of an object, whose text must be the one that goes with it.
    static func number(of store: ObjectStore, _ key: String, _ group: GroupPath) throws -> Int {
        guard case .record(let data)? = try store.tree(for: key, in: group), data.typeName == "Filled" else {
            Issue.record("\(key) in \(group) is no Filled")
            return -1
        }
        let number = try #require(try data.value("number", as: Int.self))
        #expect(try data.value("text") == ObjectPlan.text(number), "\(key) in \(group)")
        return number
    }

    /// What SQLite finds wrong with a file.
    static func damage(_ path: String) throws -> [String] { try Database(path: path).findDamage() }
}
