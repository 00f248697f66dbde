import CVitrineServer
import Foundation
package import Logging
import Synchronization
import UnixSignals

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The program `vitrine-server`.
package struct ServerCommand: Sendable {
    /// The parts of the program that work on images.
    package struct Parts: Sendable {
        /// Makes the parts for a configuration.
        package var hooks: @Sendable (ServerConfiguration, ServerMetrics, Logger) async throws -> ImageServer.Hooks
        /// The meaning of a request's path as JSON.
        package var explain: @Sendable (String, ServerConfiguration) throws -> String
        /// The command `warm` with its arguments and the environment. Returns the exit status.
        package var warm: @Sendable ([String], [String: String]) async throws -> Int32

        package init(
            hooks: @escaping @Sendable (ServerConfiguration, ServerMetrics, Logger) async throws -> ImageServer.Hooks,
            explain: @escaping @Sendable (String, ServerConfiguration) throws -> String,
            warm: @escaping @Sendable ([String], [String: String]) async throws -> Int32 = { _, _ in 1 }
        ) {
            self.hooks = hooks
            self.explain = explain
            self.warm = warm
        }
    }

    private let arguments: [String]
    private let environment: [String: String]
    private let parts: Parts

    package init(arguments: [String], environment: [String: String], parts: Parts) {
        self.arguments = arguments
        self.environment = environment
        self.parts = parts
    }

    package static let usage = """
        vitrine-server resizes images on the fly.

        USAGE: vitrine-server [--config FILE] [--SETTING VALUE]…
               vitrine-server warm LIST [--url BASE]; see warm --help

        A setting is a flag, a variable, or a key of a TOML or JSON file; the first of them that gives it decides.

          --config FILE    The file (VITRINE_CONFIG).
          --check-config   Checks the configuration, and the files and directories that it names; then ends.
          --print-config   Prints the configuration in effect as TOML, without secrets; then ends.
          --explain PATH   Prints the meaning of a request's path as JSON; then ends.
          --help           Prints this.

        SETTINGS:
        \(ServerSettings.help)

        SIGNALS: SIGTERM and SIGINT stop the server after its lame-duck time, a second one at once. SIGHUP reloads.
        A configuration that is refused ends the program with status 78.
        """

    /// Runs the program. Returns its exit status.
    package func run() async -> Int32 {
        // Sources of megabytes are freed by other threads than they came in by. Each thread's arena would keep them.
        vitrine_server_configure_allocator()
        do {
            return try await perform()
        } catch let error as ConfigurationError {
            complain(error.description)
            return ConfigurationError.exitStatus
        } catch let error as RequestError {
            complain("\(error.code): \(error.reason)")
            return 1
        } catch {
            complain("\(error)")
            return 1
        }
    }

    /// Writes a line for the operator: as JSON if that is asked for, as all that follows.
    private func complain(_ line: String, level: Logger.Level = .error) {
        guard asksForJSON else {
            return LogOutput.writeToStandardError("vitrine-server: \(UnseenText.escaped(line))\n")
        }
        LogOutput(format: .json, level: .trace).logger(label: "vitrine").log(level: level, "\(line)")
    }

    /// Whether a flag or a variable asks for lines of JSON. Problems are told before the configuration is read.
    private var asksForJSON: Bool {
        let name = "--log-format"
        let flag = arguments.enumerated().compactMap { index, argument in
            if argument.hasPrefix(name + "=") { return String(argument.dropFirst(name.count + 1)) }
            return argument == name && index + 1 < arguments.count ? arguments[index + 1] : nil
        }.first
        let variable = environment["VITRINE_LOG_FORMAT"] ?? environment["IMGPROXY_LOG_FORMAT"]
        return ["json", "structured"].contains(flag ?? variable ?? "")
    }

    private func perform() async throws -> Int32 {
        if arguments.first == "warm" { return try await parts.warm(Array(arguments.dropFirst()), environment) }
        var flags = arguments
        func take(_ command: String) -> Bool {
            let count = flags.count
            flags.removeAll { $0 == command }
            return flags.count < count
        }
        if take("--help") || take("-h") {
            print(Self.usage)
            return 0
        }
        var path: String?
        if let index = flags.firstIndex(where: { $0 == "--explain" || $0.hasPrefix("--explain=") }) {
            let flag = flags.remove(at: index)
            if flag == "--explain" {
                guard index < flags.count else { throw ConfigurationError("--explain: its value is missing") }
                path = flags.remove(at: index)
            } else {
                path = String(flag.dropFirst("--explain=".count))
            }
        }
        let prints = take("--print-config")
        let checks = take("--check-config")
        let settings = flags
        let environment = environment
        let loaded = try ServerConfiguration.load(arguments: settings, environment: environment)
        if let path {
            print(try parts.explain(path, loaded.configuration))
            return 0
        }
        if prints {
            print(loaded.configuration.toml(given: loaded.given), terminator: "")
            if !checks { return 0 }
        }
        try loaded.configuration.checkFiles()
        if checks {
            if !loaded.configuration.tlsCertificate.isEmpty {
                _ = try TLSContext(
                    certificate: loaded.configuration.tlsCertificate, key: loaded.configuration.tlsKey,
                    http2: loaded.configuration.http2)
            }
            for warning in loaded.warnings { complain(warning, level: .warning) }
            return 0
        }
        return try await serve(loaded) {
            let new = try ServerConfiguration.load(arguments: settings, environment: environment).configuration
            try new.checkFiles()
            return new
        }
    }

    private func serve(
        _ loaded: ServerConfiguration.Loaded, _ reload: @escaping @Sendable () throws -> ServerConfiguration
    ) async throws -> Int32 {
        let configuration = loaded.configuration
        let sockets = try InheritedSocket.all(environment: environment)
        InheritedSocket.clearEnvironment()
        let output = LogOutput(
            format: configuration.logFormat, level: configuration.logLevel,
            redactor: Redactor(secrets: configuration.secrets))
        let logger = output.logger(label: "vitrine")
        for warning in loaded.warnings { logger.warning("\(warning)") }
        let metrics = ServerMetrics()
        let hooks = try await parts.hooks(configuration, metrics, logger)
        let server = try ImageServer(
            configuration: configuration, sockets: sockets, notifier: ServiceNotifier(environment: environment),
            output: output, metrics: metrics, hooks: hooks)
        // Before the sockets are open, so that no signal finds the default handling.
        let signals = await UnixSignalsSequence(trapping: [.sigterm, .sigint, .sighup])
        _ = signal(SIGPIPE, SIG_IGN)
        try await server.bind()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                var isStopping = false
                for await signal in signals {
                    if signal == .sighup {
                        await server.reload(reload)
                    } else if isStopping {
                        logger.warning("The server ends at once")
                        // Nothing is left to save: caches are safe at any moment.
                        _exit(128 + (signal == .sigint ? SIGINT : SIGTERM))
                    } else {
                        isStopping = true
                        server.stop()
                    }
                }
            }
            try await server.run()
            await hooks.end()
            group.cancelAll()
            return 0
        }
    }
}
