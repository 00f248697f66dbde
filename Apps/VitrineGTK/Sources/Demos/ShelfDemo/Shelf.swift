import DemoSupport
import Foundation
import VitrineImaging
import VitrineStores
import VitrinePipeline
import VitrineViews

/// A store of pictures, and the names in it, kept up to date whoever changes them.
@MainActor
final class Shelf {
    let store: ImageStore
    let service: ImagePipeline
    /// Called when there are other names, or other pictures by these names.
    var onChange: (@MainActor (_ names: [String]) -> Void)?
    /// What could not be done, in words.
    var onProblem: (@MainActor (String) -> Void)?
    private(set) var names: [String] = []
    private let temporary: String?
    private var following: Task<Void, Never>?

    init(_ arguments: DemoArguments) {
        if let directory = arguments["--store"] {
            (store, temporary) = (ImageStore(.root(directory), path: []), nil)
        } else if arguments.has("--auto") {
            let directory = path(NSTemporaryDirectory(), "vitrine-shelf-\(UUID().uuidString)")
            (store, temporary) = (ImageStore(.root(directory), path: []), directory)
        } else {
            (store, temporary) = (ImageStore(.documents, path: ["Shelf"]), nil)
        }
        // The store has its own thumbnails; nothing is kept on disk beside them.
        var configuration = ImagePipeline.Configuration(name: "shelf")
        configuration.usesDiskCache = false
        service = ImagePipeline(configuration)
    }

    /// Shows what is there, and follows what happens to it.
    func open(keeping files: [String]) {
        following = Task { [weak self, changes = store.changes] in
            await self?.look()
            for file in files { await self?.keep(file) }
            do {
                for try await _ in changes { await self?.look() }
            } catch { self?.onProblem?("\(error)") }
        }
    }

    /// Keeps a copy of a picture's file by the file's name, or by another if that is taken.
    func keep(_ file: String) async {
        let name = String(file.split(separator: "/").last ?? "picture")
        await perform("\(name) is not kept") { store throws(StoreError) in
            var free = name, number = 2
            while await store.exists(free) {
                free = Self.name(name, number: number)
                number += 1
            }
            try await store.save(fileAt: file, as: free, replacing: false)
        }
    }

    func rename(_ name: String, to newName: String) async {
        await perform("\(name) is not renamed") { store throws(StoreError) in
            try await store.rename(name, to: newName)
        }
    }

    func delete(_ name: String) async {
        await perform("\(name) is not deleted") { store throws(StoreError) in _ = try await store.delete(name) }
    }

    /// The request of a cell; nil for a name that the store refuses.
    func request(_ name: String) -> ImageRequest? { (try? store.source(name)).map { ImageRequest($0) } }

    /// Where a picture's file is, for others to take; nil if there can be none by this name.
    func file(_ name: String) -> String? { try? store.path(of: name) }

    /// Follows no more.
    func stop() { following?.cancel() }

    /// Removes what was kept for this run only.
    func cleanUp() {
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }

    private func look() async {
        do { names = try await store.names } catch { onProblem?("\(error)") }
        onChange?(names)
    }

    private func perform(_ problem: String, _ body: (ImageStore) async throws(StoreError) -> Void) async {
        do {
            try await body(store)
        } catch {
            onProblem?("\(problem): \(error)")
        }
        await look()
    }

    /// `lake.jpg` and 2 give `lake (2).jpg`.
    nonisolated static func name(_ name: String, number: Int) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name) (\(number))" }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }
}
