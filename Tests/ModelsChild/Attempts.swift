import VitrineModels

/// Tries everything with a store that holds a `Filled` under `k` and must not be changed, and tells how it went.
struct Attempts {
    private let path: String

    init(_ path: String) { self.path = path }

    func run() async {
        await attempt("open") { _ = try ObjectStore(at: path) }
        var configuration = ObjectStore.Configuration()
        configuration.isReadOnly = true
        await attempt("look") {
            let store = try ObjectStore(at: path, configuration: configuration)
            await attempt("object") {
                ModelsChild.report("number \(try store.object(Filled.self, for: "k")?.number ?? -1)")
            }
            await attempt("log") {
                ModelsChild.report("late \(try store.object(Filled.self, for: "late")?.number ?? -1)")
            }
            await attempt("keys") { ModelsChild.report("count \(try store.keys().count)") }
            await attempt("put") { try await store.put(Filled(8), for: "k") }
            await attempt("remove") { try await store.remove("k") }
            await attempt("verify") { ModelsChild.report("intact \(try await store.verify().isIntact)") }
        }
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
