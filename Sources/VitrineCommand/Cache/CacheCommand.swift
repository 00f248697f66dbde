import ArgumentParser
import VitrineCache
import VitrineCore

/// `vitrine cache`: inspects and maintains the caches of this user's programs.
struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Lists, changes, cleans and verifies caches.",
        discussion: """
            --name selects a cache below --root. Without --name, stats, list, audit and verify process all caches. \
            Programs can use the caches at the same time.

              vitrine cache stats
              vitrine cache audit --older-than 30d --shrink-to 2GiB
            """,
        subcommands: [
            CacheStatsCommand.self, CacheListCommand.self, CacheGetCommand.self, CachePutCommand.self,
            CacheRemoveCommand.self, CacheClearCommand.self, CacheAuditCommand.self, CacheVerifyCommand.self,
        ]
    )
}

/// The options that select caches.
struct CacheSelection: ParsableArguments {
    @Option(name: [.customShort("n"), .long], help: "Name of the cache. (default: all caches, where that is possible)")
    var name: String?

    @Option(help: "Directory of the caches. (default: vitrine in the user's cache directory)", completion: .directory)
    var root: String?

    private var directory: String { root ?? CacheConfiguration.defaultRoot }

    /// Returns the cache `--name`. It must exist, unless `creating` is true.
    func one(creating: Bool = false) async throws -> ValueCache<[UInt8]> {
        guard let name else { throw ValidationError("--name is missing; 'vitrine cache stats' lists the caches") }
        let path = FilePath.join(directory, FileName.name(for: name))
        guard creating || Directory.isDirectory(path) else {
            let advice = "'vitrine cache stats' lists the caches"
            throw CacheFailure(input: name, reason: "there is no such cache in \(directory); \(advice)")
        }
        return await open(name)
    }

    /// Returns the cache `--name`, or all caches in the order of their names.
    func all() async throws -> [ValueCache<[UInt8]>] {
        if name != nil { return [try await one()] }
        // Without the directory there are no caches yet.
        let names = ((try? Directory.names(in: directory)) ?? []).sorted()
        var caches: [ValueCache<[UInt8]>] = []
        for file in names where Directory.isDirectory(FilePath.join(directory, file)) {
            guard let name = FileName.unescaped(file) else { continue }
            caches.append(await open(name))
        }
        return caches
    }

    /// Opens a cache with all formats on disk. Its capacities are set by its program, so that none is enforced here.
    private func open(_ name: String) async -> ValueCache<[UInt8]> {
        var configuration = CacheConfiguration(root: directory)
        configuration.diskCapacity = .unlimited
        configuration.memoryCapacity = .zero
        configuration.memoryPressure = nil
        configuration.memoryHits = .leaveDisk
        let cache = ValueCache<[UInt8]>(name: name, configuration: configuration)
        for format in await cache.storedFormats { cache.register(CacheFormat(format)) }
        return cache
    }
}

/// The option that selects a format.
struct FormatSelection: ParsableArguments {
    @Option(help: "Format of the entry.")
    var format = FormatName.original.description

    var name: FormatName { FormatName(format) }
}

/// A failure of one input, as `input: reason`.
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

    /// The failure of a key without an entry.
    static func noEntry(_ key: String) -> CacheFailure {
        CacheFailure(input: key, reason: "there is no such entry; 'vitrine cache list' lists the keys")
    }

    /// Prints it to standard error.
    func report() { Diagnostics.write("\(input): \(reason)") }
}

/// Runs the body of a subcommand. A failure is printed to standard error and gives exit status 1.
func reportingFailures(_ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let failure as CacheFailure {
        failure.report()
        throw ExitCode(1)
    } catch CacheError.file(let error) {
        CacheFailure(input: error.path, reason: error.writeCause).report()
        throw ExitCode(1)
    } catch let error as CacheError {
        Diagnostics.write("vitrine: \(error)")
        throw ExitCode(1)
    }
}
