import ArgumentParser
import VitrineCache
import VitrineCore

/// Which caches a subcommand is about.
struct CacheSelection: ParsableArguments {
    @Option(name: [.customShort("n"), .long], help: "Name of the cache.")
    var name: String?

    @Option(help: ArgumentHelp("Directory the caches are in.", discussion: "Default: vitrine in the user's caches."))
    var root: String?

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    private var directory: String { root ?? CacheConfiguration.defaultRoot }

    /// The cache named; it must exist unless it is to be made.
    func one(creating: Bool = false) async throws -> Cache<[UInt8]> {
        guard let name else { throw ValidationError("--name is missing: which cache?") }
        let path = FilePath.join(directory, FileName.name(for: name))
        guard creating || Directory.isDirectory(path) else {
            throw CacheFailure(input: name, reason: "There is no such cache in \(directory).")
        }
        return await open(name)
    }

    /// The cache named, or every cache there is, in the order of their names.
    func all() async throws -> [Cache<[UInt8]>] {
        if name != nil { return [try await one()] }
        // No directory yet means no caches.
        let names = ((try? Directory.names(in: directory)) ?? []).sorted()
        var caches: [Cache<[UInt8]>] = []
        for file in names where Directory.isDirectory(FilePath.join(directory, file)) {
            guard let name = FileName.unescaped(file) else { continue }
            caches.append(await open(name))
        }
        return caches
    }

    /// A cache with all formats that are on disk. Its capacities are its program's affair: none is enforced here.
    private func open(_ name: String) async -> Cache<[UInt8]> {
        var configuration = CacheConfiguration(root: directory)
        configuration.diskCapacity = .unlimited
        configuration.memoryCapacity = .zero
        configuration.memoryPressure = nil
        configuration.memoryHits = .leaveDisk
        let cache = Cache<[UInt8]>(name: name, configuration: configuration)
        for format in await cache.storedFormats { cache.register(Format(format)) }
        return cache
    }
}

/// Which format of the cache.
struct FormatSelection: ParsableArguments {
    @Option(help: "Format of the entry.")
    var format = FormatName.original.rawValue

    var name: FormatName { FormatName(format) }
}

/// A failure that concerns one input, as `input: reason`.
struct CacheFailure: Error {
    var input: String
    var reason: String

    init(input: String, reason: String) {
        self.input = input
        self.reason = reason
    }

    init(input: String, _ error: any Error) {
        self.init(input: input, reason: Diagnostics.describe(error).reason)
    }

    /// Says it on standard error.
    func report() { Diagnostics.write("\(input): \(reason)") }
}

/// Runs a subcommand's body; failures are said as the others are and end with status 1.
func reportingFailures(_ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let failure as CacheFailure {
        failure.report()
        throw ExitCode(1)
    } catch let error as CacheError {
        Diagnostics.write("vitrine: \(error)")
        throw ExitCode(1)
    }
}
