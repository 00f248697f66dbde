import ArgumentParser
import Foundation
import VitrineCache
import VitrineCore

/// `vitrine cache get`: an entry's bytes.
struct CacheGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Writes an entry's bytes, as they are stored.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var format: FormatSelection

    @Argument(help: "Key of the entry.")
    var key: String

    @Option(name: [.customShort("o"), .long], help: "File to write; standard output without it.")
    var output: String?

    func run() async throws {
        try await reportingFailures {
            let cache = try await selection.one()
            guard let bytes = try await cache.bytes(forKey: CacheKey(identity: key), format: format.name) else {
                throw CacheFailure(input: key, reason: "There is no such entry.")
            }
            guard let output, output != "-" else {
                return Output.contents(bytes)
            }
            do throws(FileError) {
                try AtomicFile.write(bytes, to: output)
            } catch {
                throw CacheFailure(input: output, error)
            }
        }
    }
}

/// `vitrine cache put`: an entry from a file.
struct CachePutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put", abstract: "Stores a file's bytes under a key, in place of what was there.")

    @OptionGroup var selection: CacheSelection
    @OptionGroup var format: FormatSelection

    @Argument(help: "Key of the entry.")
    var key: String

    @Argument(help: "File to read; - is standard input.")
    var file: String

    @Option(help: "How long the entry is fresh: 90s, 15m, 12h, 30d. For ever without it.")
    var expiresIn: AgeArgument?

    func run() async throws {
        try await reportingFailures {
            let bytes: [UInt8]
            if file == "-" {
                bytes = Array(try FileHandle.standardInput.readToEnd() ?? Data())
            } else {
                do throws(FileError) {
                    bytes = try FileContents.read(file)
                } catch {
                    throw CacheFailure(input: file, error)
                }
            }
            let cache = try await selection.one(creating: true)
            cache.register(Format(format.name))
            try await cache.set(
                bytes, forKey: CacheKey(identity: key), format: format.name, timeToLive: expiresIn?.duration)
            try await cache.flush()
        }
    }
}

/// `vitrine cache remove`: an entry less.
struct CacheRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes entries, in all formats unless told otherwise.")

    @OptionGroup var selection: CacheSelection

    @Argument(help: "Keys of the entries.")
    var keys: [String]

    @Option(help: "Only the entries of this format.")
    var format: String?

    func run() async throws {
        try await reportingFailures {
            let cache = try await selection.one()
            var missing = 0
            for key in keys {
                let identity = CacheKey(identity: key)
                let formats = await cache.storedFormats.filter { format == nil || $0.rawValue == format }
                var found = false
                for name in formats {
                    found = await cache.contains(identity, format: name) || found
                    await cache.remove(identity, format: name)
                }
                if !found {
                    missing += 1
                    CacheFailure(input: key, reason: "There is no such entry.").report()
                }
            }
            try await cache.flush()
            if missing > 0 { throw ExitCode(1) }
        }
    }
}

/// `vitrine cache clear`: an empty cache.
struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Removes every entry of a cache, or with --all of all caches.")

    @OptionGroup var selection: CacheSelection

    @Option(help: "Only the entries of this format.")
    var format: String?

    @Flag(help: "Every cache below the root.")
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
