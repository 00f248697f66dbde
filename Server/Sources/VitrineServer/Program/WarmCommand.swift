import Foundation
import Logging
import Synchronization
import VitrineCore
import VitrineFleet
import VitrineImaging
import VitrineNetwork

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `vitrine-server warm LIST`: makes the images of a list before anyone asks for them.
///
/// Without `--url`, the images are made by this process with the settings of the server, at low priority, and given to
/// the tier, the store of results and the disk. Nodes that warm the same list at the same time share the work. With
/// `--url`, a running server is asked for them.
package struct WarmCommand: Sendable {
    package static let usage = """
        vitrine-server warm makes the images of a list before anyone asks for them.

        USAGE: vitrine-server warm LIST [--url BASE] [--accept TEXT] [--parallel N] [--quiet] [SETTING…]

        LIST is a file with a path or URL of an image in each line, or - for standard input. Empty lines and lines that
        begin with # are left out, and lines that repeat others.

          --url BASE      Asks the server at this URL. Otherwise the images are made by this process, with the settings
                          of the server, for the tier, the store of results and the disk cache.
          --accept TEXT   The Accept field of the clients. Default: \(defaultAccept)
          --parallel N    Images at once, from 1 to 64. Default: 2.
          --quiet         Prints no progress.

        The last line is a summary. The status is 0 if all images are there, 1 if some are not, 78 for a configuration
        that is refused.
        """

    private static let defaultAccept = "image/avif,image/webp,*/*"

    private enum Outcome: Sendable { case made, present, failed(String) }

    private struct Item: Sendable {
        let line: Int
        let path: String
    }

    private struct Arguments {
        var list: String?
        var base: String?
        var accept = WarmCommand.defaultAccept
        var parallel = 2
        var isQuiet = false
        var settings: [String] = []
    }

    private struct Counts {
        var made = 0
        var present = 0
        var failed = 0
        var total: Int { made + present + failed }
    }

    /// Counts images, and prints each hundredth and each failure.
    private final class Progress: Sendable {
        private let state: Mutex<Counts>
        private let total: Int
        private let isQuiet: Bool

        init(total: Int, refused: Int, isQuiet: Bool) {
            (self.total, self.isQuiet) = (total, isQuiet)
            state = Mutex(Counts(failed: refused))
        }

        var counts: Counts { state.withLock { $0 } }

        func note(_ outcome: Outcome, line: Int) {
            let now = state.withLock { counts in
                switch outcome {
                case .made: counts.made += 1
                case .present: counts.present += 1
                case .failed: counts.failed += 1
                }
                return counts
            }
            if case .failed(let reason) = outcome { WarmCommand.complain("line \(line): \(reason)") }
            if !isQuiet, now.total % 100 == 0 || now.total == total {
                WarmCommand.complain("\(now.total) of \(total)")
            }
        }
    }

    private let arguments: [String]
    private let environment: [String: String]

    package init(arguments: [String], environment: [String: String]) {
        (self.arguments, self.environment) = (arguments, environment)
    }

    /// Runs the command. Returns its exit status.
    package func run() async throws -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            print(Self.usage)
            return 0
        }
        let arguments = try parsed()
        guard let list = arguments.list else { throw ConfigurationError("warm: the list is missing; see warm --help") }
        let maker = try maker(arguments)
        let (items, refused) = try Self.items(of: list)
        for (line, reason) in refused { Self.complain("line \(line): \(reason)") }
        let total = items.count + refused.count
        if let problem = await maker.begin() { Self.complain(problem) }
        let progress = Progress(total: total, refused: refused.count, isQuiet: arguments.isQuiet)
        let start = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for (index, item) in items.enumerated() {
                if index >= arguments.parallel { await group.next() }
                group.addTask { progress.note(await maker.make(item.path), line: item.line) }
            }
        }
        await maker.end()
        let end = progress.counts
        let seconds = ((ContinuousClock.now - start) / .seconds(1) * 10).rounded() / 10
        print("\(total) images: \(end.made) made, \(end.present) present, \(end.failed) failed in \(seconds) s")
        return end.failed == 0 ? 0 : 1
    }

    private static func complain(_ text: String) {
        LogOutput.writeToStandardError("vitrine-server warm: \(UnseenText.escaped(text))\n")
    }

    private func parsed() throws -> Arguments {
        var result = Arguments()
        var rest = arguments[...]
        func value(_ flag: String) throws -> String {
            guard let value = rest.popFirst() else { throw ConfigurationError("\(flag): its value is missing") }
            return value
        }
        while let word = rest.popFirst() {
            switch word {
            case "--url": result.base = try value(word)
            case "--accept": result.accept = try value(word)
            case "--quiet": result.isQuiet = true
            case "--parallel":
                guard let count = Int(try value(word)), (1...64).contains(count) else {
                    throw ConfigurationError("--parallel: it is not a number from 1 to 64")
                }
                result.parallel = count
            case _ where word.hasPrefix("--"):
                result.settings.append(word)
                // A setting has its value in the same word, in the next one, or none.
                let name = word.dropFirst(2)
                let isSwitch = ServerSettings.all.contains { $0.name == name && $0.isSwitch }
                if !word.contains("="), !isSwitch { result.settings.append(try value(word)) }
            case _ where result.list == nil: result.list = word
            default: throw ConfigurationError("warm: “\(word)” is a second list")
            }
        }
        return result
    }

    /// The lines of a list, each once, and those that are no paths.
    private static func items(of list: String) throws -> (items: [Item], refused: [(line: Int, reason: String)]) {
        let data: Data? = list == "-"
            ? try FileHandle.standardInput.readToEnd() ?? Data() : FileManager.default.contents(atPath: list)
        guard let data else { throw ConfigurationError("warm: \(list) cannot be read") }
        var items: [Item] = []
        var refused: [(line: Int, reason: String)] = []
        var seen: Set<String> = []
        for (index, bytes) in data.split(separator: 10, omittingEmptySubsequences: false).enumerated() {
            guard let text = String(validating: bytes, as: UTF8.self) else {
                refused.append((index + 1, "it is not UTF-8"))
                continue
            }
            let line = text.trimmingCharacters(in: .whitespaces.union(.newlines))
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            guard let path = path(in: line) else {
                refused.append((index + 1, "it is neither a path nor a URL"))
                continue
            }
            if seen.insert(path).inserted { items.append(Item(line: index + 1, path: path)) }
        }
        return (items, refused)
    }

    /// The path of a line that is a path, or a URL of this server.
    private static func path(in line: String) -> String? {
        guard line.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        if line.hasPrefix("/") { return line }
        guard line.hasPrefix("http://") || line.hasPrefix("https://"), let mark = line.firstRange(of: "://"),
            let slash = line[mark.upperBound...].firstIndex(of: "/")
        else { return nil }
        return String(line[slash...])
    }

    // MARK: Makers

    private protocol Maker: Sendable {
        /// Returns a line for the operator if something does not work.
        func begin() async -> String?
        func make(_ path: String) async -> Outcome
        func end() async
    }

    private func maker(_ arguments: Arguments) throws -> any Maker {
        guard let base = arguments.base else {
            return try LocalMaker(try ServerConfiguration.load(
                arguments: arguments.settings, environment: environment), arguments.accept)
        }
        guard arguments.settings.isEmpty else {
            throw ConfigurationError("warm: \(arguments.settings[0]) has no effect with --url")
        }
        guard let url = URL(string: base), let scheme = url.scheme, ["http", "https"].contains(scheme), url.host != nil
        else { throw ConfigurationError("--url: it is not an http or https URL") }
        return ServerMaker(base: base.hasSuffix("/") ? String(base.dropLast()) : base, accept: arguments.accept)
    }

    /// Makes images in this process.
    private struct LocalMaker: Maker {
        let images: ImageRoutes
        let format: FormatNegotiation
        let accept: String

        init(_ loaded: ServerConfiguration.Loaded, _ accept: String) throws {
            var configuration = loaded.configuration
            try configuration.checkFiles()
            // Formats that take long are what this is for.
            configuration.encodeDeadline = 0
            configuration.timeout = 3_600
            let output = LogOutput(
                format: configuration.logFormat, level: .warning, redactor: Redactor(secrets: configuration.secrets))
            images = try ImageRoutes(
                configuration, observation: ServerObservation(ServerMetrics()), logger: output.logger(label: "vitrine"))
            format = try configuration.http().negotiation
            self.accept = accept
        }

        func begin() async -> String? {
            do {
                try await images.renderer.remote?.connect()
                return nil
            } catch {
                return "the images are not shared by the tier: \(error)"
            }
        }

        func make(_ path: String) async -> Outcome {
            do {
                return try await images.warm(path, format.choice(for: accept)) ? .made : .present
            } catch let error as RequestError {
                return .failed("\(error.status) \(error.code): \(error.reason)")
            } catch {
                return .failed("\(error)")
            }
        }

        func end() async {
            await images.renderer.shutDown()
            await images.end()
        }
    }

    /// Asks a server.
    private struct ServerMaker: Maker {
        let base: String
        let accept: String
        let loader = NetworkLoader()

        func begin() async -> String? { nil }

        func make(_ path: String) async -> Outcome {
            guard let url = URL(string: base + path) else { return .failed("it is not a URL") }
            while true {
                do throws(NetworkError) {
                    var request = HTTPRequest(url: url)
                    request.headers.append("Accept", accept)
                    // RFC 9218: the lowest.
                    request.headers.append("Priority", "u=7")
                    request.totalTimeout = .seconds(600)
                    let response = try await loader.load(request)
                    _ = try await response.body.collect()
                    let isHit = response.head.headers["Cache-Status"]?.contains("; hit") == true
                    return isHit ? .present : .made
                } catch .status(_, let head) where head.status == 429 || head.status == 503 {
                    // The server is busy with others, who come first.
                    let pause = head.headers["Retry-After"].flatMap { Int($0) } ?? 1
                    try? await Task.sleep(for: .seconds(max(1, min(60, pause))))
                } catch .status(_, let head) {
                    return .failed("status \(head.status)")
                } catch {
                    return .failed("\(error)")
                }
            }
        }

        func end() async {}
    }
}

extension ImageRoutes {
    /// Makes the image of a path at low priority.
    ///
    /// - Returns: Whether it had to be made.
    /// - Throws: As a request.
    func warm(_ path: String, _ format: FormatChoice) async throws -> Bool {
        let thumbor = "/thumbor"
        let isThumbor = path.hasPrefix(thumbor + "/")
        let http = service.configuration
        guard isThumbor ? http.thumborPrefix != nil : http.hasNative else {
            throw RequestError(404, code: "not-found", reason: "This grammar is switched off.")
        }
        let (name, query) = path.firstIndex(of: "?").map { (path[..<$0], Optional(path[$0...].dropFirst())) }
            ?? (path[...], nil)
        let target = ImageTarget(
            grammar: isThumbor ? .thumbor : .native, path: isThumbor ? name.dropFirst(thumbor.count) : name,
            query: query)
        let url = try backend.parse(target)
        let isOpen = url.options.format == nil
        let rendering = try await renderer.image(
            for: url, format: isOpen ? format.preferred : nil, priority: .low)
        return rendering.origin == .made
    }
}
