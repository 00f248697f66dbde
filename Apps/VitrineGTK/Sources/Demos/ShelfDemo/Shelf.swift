import DemoSupport
import Foundation
import VitrineImaging
import VitrineStores
import VitrinePipeline
import VitrineViews

/// A store of images and the names in it. It follows changes by other processes.
@MainActor
final class Shelf {
    let store: ImageStore
    let service: ImagePipeline
    /// Called when names or images change.
    var onChange: (@MainActor (_ names: [String]) -> Void)?
    /// Called when ``problems`` change.
    var onProblems: (@MainActor () -> Void)?
    /// The messages of the last operation, one for each refused file.
    private(set) var problems: [String] = [] { didSet { if problems != oldValue { onProblems?() } } }
    private var running = 0
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
        // The store has thumbnails of its own, so the pipeline needs no disk cache.
        var configuration = ImagePipeline.Configuration(name: "shelf")
        configuration.usesDiskCache = false
        service = ImagePipeline(configuration)
    }

    /// Lists the names, and follows changes.
    func open(keeping files: [String]) {
        following = Task { [weak self, changes = store.changes] in
            await self?.look()
            if !files.isEmpty { await self?.keep(files) }
            do {
                for try await _ in changes { await self?.look() }
            } catch { self?.problems.append("\(error)") }
        }
    }

    /// Stores copies of image files, and names those that are refused in ``problems``.
    func keep(_ files: [String]) async {
        await operate { for file in files { await keep(file) } }
    }

    /// Reports files that cannot be read as a file.
    func refuse(_ addresses: [String]) {
        problems += addresses.map { "\($0) could not be stored: it is not a file on this computer." }
    }

    /// Stores a copy of an image file under its name, or under a free name if that exists.
    private func keep(_ file: String) async {
        let name = String(file.split(separator: "/").last ?? "picture")
        await perform("\(name) could not be stored") { store throws(StoreError) in
            var free = name, number = 2
            while await store.exists(free) {
                free = Self.name(name, number: number)
                number += 1
            }
            try await store.save(fileAt: file, as: free, replacing: false)
        }
    }

    func rename(_ name: String, to newName: String) async {
        await operate {
            await perform("\(name) could not be renamed") { store throws(StoreError) in
                try await store.rename(name, to: newName)
            }
        }
    }

    func delete(_ name: String) async {
        await operate {
            await perform("\(name) could not be deleted") { store throws(StoreError) in
                _ = try await store.delete(name)
            }
        }
    }

    /// The request of a cell; nil for a name that the store refuses.
    func request(_ name: String) -> ImageRequest? { (try? store.source(name)).map { ImageRequest($0) } }

    /// Returns the path of an image file for a drag; nil if the name is not valid.
    func file(_ name: String) -> String? { try? store.path(of: name) }

    /// Stops following changes.
    func stop() { following?.cancel() }

    /// Removes the temporary files of this run.
    func cleanUp() {
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }

    private func look() async {
        do { names = try await store.names } catch { problems.append("\(error)") }
        onChange?(names)
    }

    /// Runs an operation. It removes the messages of earlier ones, but not of those that are still running.
    private func operate(_ body: () async -> Void) async {
        if running == 0 { problems = [] }
        running += 1
        await body()
        running -= 1
    }

    private func perform(_ problem: String, _ body: (ImageStore) async throws(StoreError) -> Void) async {
        do {
            try await body(store)
        } catch {
            problems.append("\(problem): \(error)")
        }
        await look()
    }

    /// Returns a numbered name: `lake (2).jpg` for `lake.jpg` and 2.
    nonisolated static func name(_ name: String, number: Int) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name) (\(number))" }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }
}
