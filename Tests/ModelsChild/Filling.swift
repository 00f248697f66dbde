import TestSupport
import VitrineModels

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Puts objects until the file system is full, and looks at what became of everything.
///
/// Beside the store is a file `ballast`, which makes room when it is removed.
struct Filling {
    private let path: String
    private let store: ObjectStore

    init(_ path: String) throws {
        self.path = path
        store = try ObjectStore(at: path)
    }

    func run() async throws {
        var count = 0
        while count < 100_000 {
            do {
                try await store.put(Filled(count), for: "\(count)")
                count += 1
            } catch {
                ModelsChild.report("full \(ModelsChild.kind(error))")
                break
            }
        }
        ModelsChild.report("stored \(count)")
        let large = [UInt8](repeating: 1, count: 2_000_000)
        await attempt("replacement") { try await store.put(large, for: "0") }
        await attempt("batch") {
            try await store.transaction { batch throws(PersistenceError) in
                for number in 0..<20 { try batch.put(large, for: "b\(number)") }
                batch.remove("0")
            }
        }
        await attempt("backup") { try await store.backUp(to: path + ".copy") }
        try check(count)
        unlink(path + ".ballast")
        await attempt("after") { try await store.put(Filled(count), for: "\(count)") }
        try check(count + 1)
    }

    private func check(_ count: Int) throws {
        let intact = try (0..<count).count { try store.object(Filled.self, for: "\($0)") == Filled($0) }
        ModelsChild.report("intact \(intact)")
        ModelsChild.report("keys \(try store.count())")
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
