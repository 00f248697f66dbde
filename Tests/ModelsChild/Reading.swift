import TestSupport
import VitrineModels

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Opens a store on a full disk, reads it, and writes when there is room: before `ballast` beside it is removed, and
/// after.
struct Reading {
    private let path: String

    init(_ path: String) { self.path = path }

    func run() async throws {
        let store = try ObjectStore(at: path)
        let second = try ObjectStore(at: path)
        ModelsChild.report("k \(try store.object(Filled.self, for: "k")?.number ?? -1)")
        ModelsChild.report("late \(try second.object(Filled.self, for: "late")?.number ?? -1)")
        ModelsChild.report("count \(try store.count())")
        ModelsChild.report("intact \(try await store.verify().isIntact)")
        await attempt("put") { try await store.put(Filled(9), for: "k") }
        await attempt("remove") { try await second.remove("k") }
        ModelsChild.report("kept \(try store.object(Filled.self, for: "k")?.number ?? -1)")
        unlink(path + ".ballast")
        await attempt("after") { try await store.put(Filled(10), for: "k") }
        await attempt("after") { try await second.put(Filled(11), for: "new") }
        ModelsChild.report("new \(try store.object(Filled.self, for: "new")?.number ?? -1)")
        ModelsChild.report("k \(try second.object(Filled.self, for: "k")?.number ?? -1)")
    }

    private func attempt(_ name: String, _ body: () async throws -> Void) async {
        do {
            try await body()
            ModelsChild.report("\(name) done")
        } catch {
            ModelsChild.report("\(name) \(ModelsChild.kind(error))")
        }
    }
}
