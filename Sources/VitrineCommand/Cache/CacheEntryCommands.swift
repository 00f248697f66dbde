import ArgumentParser
import VitrineCache
import VitrineCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine cache get`: writes an entry.
struct CacheGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Writes the stored bytes of an entry.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var format: FormatSelection

    @Argument(help: "Key of the entry.")
    var key: String

    @Option(
        name: [.customShort("o"), .long], help: "File to write. (default: standard output)", completion: .file(),
        transform: OutputArgument.normalized)
    var output: String?

    func run() async throws {
        try await reportingFailures {
            let cache = try await selection.one()
            guard let bytes = try await cache.bytes(forKey: CacheKey(identity: key), format: format.name) else {
                throw CacheFailure.noEntry(key)
            }
            guard let output, output != "-" else {
                return Output.contents(bytes)
            }
            do throws(FileError) {
                try AtomicFile.write(bytes, to: output)
            } catch {
                throw CacheFailure(input: output, reason: "cannot write it: \(error.writeCause)")
            }
        }
    }
}

/// `vitrine cache put`: stores a file as an entry.
struct CachePutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Stores the bytes of a file as an entry, and replaces an existing one.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var format: FormatSelection

    @Argument(help: "Key of the entry.")
    var key: String

    @Argument(help: "File to read; - is standard input.", completion: .file())
    var file: String

    @Option(
        help: ArgumentHelp("Time until the entry expires, such as 90s, 12h or 30d. (default: never)", valueName: "age"))
    var expiresIn: AgeArgument?

    func run() async throws {
        try await reportingFailures {
            let bytes: [UInt8]
            if file == "-" {
                bytes = try StandardStream.readInput()
            } else {
                do throws(FileError) {
                    bytes = try FileContents.read(file)
                } catch {
                    throw CacheFailure(input: file, error)
                }
            }
            let cache = try await selection.one(creating: true)
            cache.register(CacheFormat(format.name))
            try await cache.set(
                bytes, forKey: CacheKey(identity: key), format: format.name, timeToLive: expiresIn?.duration)
            try await cache.flush()
        }
    }
}

/// `vitrine cache remove`: removes entries.
struct CacheRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes entries.")

    @OptionGroup var selection: CacheSelection

    @Argument(help: "Keys of the entries.")
    var keys: [String]

    @Option(help: "Remove only entries of this format. (default: all formats)")
    var format: String?

    func run() async throws {
        try await reportingFailures {
            let cache = try await selection.one()
            var missing = 0
            for key in keys {
                let identity = CacheKey(identity: key)
                let formats = await cache.storedFormats.filter { format == nil || $0.description == format }
                var found = false
                for name in formats {
                    found = await cache.contains(identity, format: name) || found
                    await cache.remove(identity, format: name)
                }
                if !found {
                    missing += 1
                    CacheFailure.noEntry(key).report()
                }
            }
            try await cache.flush()
            if missing > 0 { throw ExitCode(1) }
        }
    }
}

/// `vitrine cache clear`: empties caches.
struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Removes all entries of a cache, or with --all of all caches.")

    @OptionGroup var selection: CacheSelection

    @Option(help: "Remove only entries of this format. (default: all formats)")
    var format: String?

    @Flag(help: "Clear every cache below --root.")
    var all = false

    func validate() throws {
        if all == (selection.name != nil) { throw ValidationError("clear needs either --name or --all") }
    }

    func run() async throws {
        try await reportingFailures {
            for cache in try await selection.all() {
                if let format {
                    try await cache.removeAll(format: FormatName(format))
                } else {
                    try await cache.removeAll()
                }
            }
        }
    }
}
