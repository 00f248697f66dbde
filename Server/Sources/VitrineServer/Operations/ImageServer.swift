import Foundation
package import Hummingbird
import HummingbirdCore
import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// The server without the work on images: listeners, limits, reports, reload and stop.
///
/// ``run()`` returns when the server has stopped: after ``stop()``, or the graceful shutdown of a service group.
package final class ImageServer: Service {
    /// The parts that work on images.
    package struct Hooks: Sendable {
        /// Answers the requests of the main listeners.
        package var responder: any HTTPResponder<ServerRequestContext>
        /// Answers requests for images in memory, without waiting; nil for none.
        package var immediate: ImmediateResponder?
        /// Removes results and returns their number; nil if none are kept.
        package var purge: (@Sendable (PurgeRequest) async throws -> Int)?
        /// Applies a new configuration. An error keeps the old one.
        package var reload: @Sendable (ServerConfiguration) async throws -> Void
        /// Facts for `/debug`.
        package var facts: @Sendable () async -> [String: SettingValue]
        /// Called when the server begins to stop.
        package var stop: @Sendable () -> Void = {}
        /// Completes work in the background, after the last request.
        package var end: @Sendable () async -> Void = {}

        package init(
            responder: any HTTPResponder<ServerRequestContext>, immediate: ImmediateResponder? = nil,
            purge: (@Sendable (PurgeRequest) async throws -> Int)? = nil,
            reload: @escaping @Sendable (ServerConfiguration) async throws -> Void = { _ in },
            facts: @escaping @Sendable () async -> [String: SettingValue] = { [:] }
        ) {
            self.responder = responder
            self.immediate = immediate
            self.purge = purge
            self.reload = reload
            self.facts = facts
        }
    }

    package let metrics: ServerMetrics
    package let drain = DrainState()
    private let output: LogOutput
    private let logger: Logger
    private let notifier: ServiceNotifier
    private let limiter: RateLimiter
    private let handler: RequestHandler
    private let tls: TLSContext?
    private let exporter: OTLPExporter?
    private let listeners: [HTTPListener]
    private let admin: [HTTPListener]
    /// The limits of clients.
    package let gate: RequestGate
    /// The addresses of the main listeners; nil for a socket that does not tell its own.
    private let listening: [ListenAddress?]
    private let hooks: Hooks
    private let stopSignal: AsyncStream<Void>
    private let stopper: AsyncStream<Void>.Continuation
    private let lameDuckEnd = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - sockets: Listening sockets of the service manager. Those named `admin` are for the admin listener, others
    ///     take the place of the addresses in the configuration.
    ///   - metrics: Shared with the parts that work on images.
    /// - Throws: ``ConfigurationError``.
    package init(
        configuration: ServerConfiguration, sockets: [InheritedSocket] = [], notifier: ServiceNotifier,
        output: LogOutput, metrics: ServerMetrics, hooks: Hooks
    ) throws {
        self.output = output
        self.notifier = notifier
        self.metrics = metrics
        self.hooks = hooks
        (stopSignal, stopper) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        let logger = output.logger(label: "vitrine")
        self.logger = logger
        // Hummingbird tells about every connection that breaks, at a level of its own choice.
        let connectionLogger = output.logger(label: "vitrine.connection")
        limiter = RateLimiter(
            rate: configuration.rateLimit, burst: configuration.rateBurst, clients: configuration.rateClients)
        tls =
            configuration.tlsCertificate.isEmpty
            ? nil
            : try TLSContext(
                certificate: configuration.tlsCertificate, key: configuration.tlsKey, http2: configuration.http2)
        do {
            exporter =
                configuration.otlpEndpoint.isEmpty
                ? nil
                : try OTLPExporter(
                    endpoint: configuration.otlpEndpoint, headers: configuration.otlpHeaders,
                    serviceName: configuration.serviceName, logger: logger)
        } catch let error as SettingError {
            throw ConfigurationError("otlp-endpoint: \(error.reason)")
        }
        let inFlight = RequestsInFlight()
        let reports = RequestHandler.Reports(
            logger: logger, metrics: metrics,
            tracer: exporter.map { OTLPTracer(exporter: $0, ratio: configuration.traceRatio) })
        let handler = RequestHandler(
            hooks, configuration: configuration, reports: reports, limiter: limiter, drain: drain, inFlight: inFlight)
        self.handler = handler

        let mainSockets = sockets.filter { $0.name != "admin" }
        let adminSockets = sockets.filter { $0.name == "admin" }
        listening = mainSockets.isEmpty ? configuration.bind : mainSockets.map(\.address)
        try configuration.validate(listening: listening)
        let adminAddresses: [ListenAddress?] =
            adminSockets.isEmpty ? configuration.adminBind : adminSockets.map(\.address)
        for address in adminAddresses where address?.isLocal != true {
            logger.warning(
                "The admin listener is reachable from other machines",
                metadata: ["address": "\(address?.description ?? "an inherited socket")"])
        }
        func endpoints(_ sockets: [InheritedSocket], _ addresses: [ListenAddress]) -> [HTTPListener.Endpoint] {
            sockets.isEmpty ? addresses.map { .address($0) } : sockets.map { .inherited($0) }
        }
        let gate = RequestGate(
            counter: RequestCounter(
                most: configuration.maximumRequests, mostOfClient: configuration.maximumClientRequests),
            answers: AnswerMemory(limit: configuration.answerMemory), client: { handler.client($0, $1) })
        self.gate = gate
        let setup = HTTPConnectionSetup(
            responder: { try await handler.respond(to: $0, writer: $1, channel: $2) },
            immediate: { handler.immediate($0) }, configuration: configuration, tls: tls, drain: drain, gate: gate)
        listeners = endpoints(mainSockets, configuration.bind).map {
            HTTPListener(
                name: "main", endpoint: $0, setup: setup,
                maximumConnections: configuration.maximumConnections, logger: connectionLogger)
        }

        // The closures below must not keep the server alive before all of it is there.
        let current = Current(configuration)
        self.current = current
        let responder = AdminResponder(
            metrics: metrics, drain: drain, inFlight: inFlight,
            redactor: { Redactor(secrets: current.configuration.secrets) },
            configuration: { current.configuration }, purge: hooks.purge, logger: logger, facts: hooks.facts,
            page: OperatorPage(
                responder: hooks.responder, configuration: { current.configuration }, logger: logger))
        let adminSetup = HTTPConnectionSetup(
            responder: { try await responder.respond(to: $0, writer: $1, channel: $2) },
            configuration: configuration, tls: nil, drain: drain)
        admin = endpoints(adminSockets, configuration.adminBind).map {
            HTTPListener(
                name: "admin", endpoint: $0, setup: adminSetup, maximumConnections: 256, logger: connectionLogger)
        }

        // The listeners reference the metrics.
        metrics.registry.onCollect { [weak self] registry in self?.collect(into: registry) }
    }

    private func collect(into registry: PrometheusRegistry) {
        for (name, listeners) in [("main", listeners), ("admin", admin)] {
            registry.setGauge(
                "vitrine_connections", [("listener", name)],
                to: Double(listeners.map(\.connectionCount).reduce(0, +)))
        }
        registry.setGauge("vitrine_answer_bytes", to: Double(gate.answers.count))
        registry.setGauge("vitrine_draining", to: drain.isDraining ? 1 : 0)
        if let exporter { registry.setCounter("vitrine_spans_dropped_total", to: Double(exporter.dropped)) }
    }

    /// The configuration in effect, for parts that outlive a reload.
    private final class Current: Sendable {
        private let value: Mutex<ServerConfiguration>
        init(_ configuration: ServerConfiguration) { value = Mutex(configuration) }
        var configuration: ServerConfiguration {
            get { value.withLock { $0 } }
            set { value.withLock { $0 = newValue } }
        }
    }
    private let current: Current

    /// The addresses of the main listeners; empty before they listen.
    package var addresses: [SocketAddress] { listeners.compactMap(\.localAddress) }
    package var adminAddresses: [SocketAddress] { admin.compactMap(\.localAddress) }

    /// Opens every socket, so that the server is reachable when this returns.
    ///
    /// - Throws: ``ConfigurationError`` with the address that cannot be used.
    package func bind() async throws {
        var bound: [HTTPListener] = []
        do {
            for listener in listeners + admin {
                try await listener.bind()
                bound.append(listener)
            }
        } catch {
            for listener in bound { await listener.abandon() }
            throw error
        }
    }

    /// Begins to stop. Returns at once.
    package func stop() { stopper.yield() }

    /// Lets a server that stops close its sockets now.
    package func endLameDuck() { lameDuckEnd.continuation.yield() }

    /// Serves until the server has stopped. Opens the sockets if ``bind()`` did not.
    package func run() async throws {
        if (listeners + admin).allSatisfy({ $0.localAddress == nil }) { try await bind() }
        let names = addresses.map(\.text).joined(separator: " ")
        logger.notice(
            "The server is ready",
            metadata: [
                "addresses": .string(names),
                "admin": .string(adminAddresses.map(\.text).joined(separator: " ")),
                "signed": .stringConvertible(current.configuration.isSigned),
            ])
        notifier.ready(status: "Serving on \(names)")
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                for listener in admin { group.addTask { await listener.run() } }
                if let exporter { group.addTask { await exporter.run() } }
                if let interval = notifier.watchdogInterval { group.addTask { await self.watch(interval) } }
                await withTaskGroup(of: Void.self) { main in
                    for listener in listeners { main.addTask { await listener.run() } }
                    main.addTask { await self.stopWhenAsked() }
                    await main.waitForAll()
                }
                for listener in admin {
                    listener.stopAccepting()
                    listener.closeConnections()
                }
                // Ends the exporter, which sends what it has, and the watchdog.
                group.cancelAll()
            }
        } onGracefulShutdown: {
            self.stop()
        }
        logger.notice("The server has stopped")
    }

    /// Waits for ``stop()``, then lets clients leave: first by answers that close their connections, then by closed
    /// sockets, at last by closed connections.
    private func stopWhenAsked() async {
        for await _ in stopSignal { break }
        let configuration = current.configuration
        drain.begin()
        hooks.stop()
        notifier.stopping()
        logger.notice("The server stops", metadata: ["lame_duck": .stringConvertible(configuration.lameDuck)])
        for listener in listeners { listener.announceDrain() }
        await waitForLameDuck(.seconds(configuration.lameDuck))
        // A connection that was accepted is set up on another thread. Until then, its socket must stay open.
        for listener in listeners where listener.isInherited { listener.pauseAccepting() }
        if listeners.contains(where: \.isInherited) { try? await Task.sleep(for: .milliseconds(200)) }
        for listener in listeners { listener.stopAccepting() }
        for listener in listeners { listener.announceDrain() }
        // The request of a connection that was just accepted is still on its way.
        let start = ContinuousClock.now
        await waitForConnections(until: start + .seconds(min(1, configuration.stopTimeout)))
        await waitForConnections(until: start + .seconds(configuration.stopTimeout), quiescing: true)
        let rest = listeners.map(\.connectionCount).reduce(0, +)
        if rest > 0 {
            logger.warning("Connections are closed before their answers", metadata: ["count": .stringConvertible(rest)])
        }
        for listener in listeners { listener.closeConnections() }
    }

    /// A cancelled task does not wait.
    private func waitForLameDuck(_ time: Duration) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: time) }
            group.addTask { for await _ in self.lameDuckEnd.stream { break } }
            await group.next()
            group.cancelAll()
        }
    }

    /// Returns when every connection has ended, or at a time.
    private func waitForConnections(until end: ContinuousClock.Instant, quiescing: Bool = false) async {
        while listeners.contains(where: { $0.connectionCount > 0 }), ContinuousClock.now < end, !Task.isCancelled {
            if quiescing { for listener in listeners { listener.quiesce() } }
            try? await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Tells the service manager that tasks and event loops make progress.
    private func watch(_ interval: Duration) async {
        while !Task.isCancelled {
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            if (try? await loop.submit {}.get()) != nil { notifier.watchdog() }
            try? await Task.sleep(for: interval)
        }
    }

    /// Applies the settings that may change while the server runs; keeps all old ones if one of the new is wrong.
    ///
    /// - Parameter load: Reads the configuration anew.
    package func reload(_ load: @Sendable () throws -> ServerConfiguration) async {
        notifier.reloading()
        let old = current.configuration
        do {
            let new = try load()
            let fixed = old.differencesThatNeedARestart(new)
            let applied = old.withReloadableSettings(of: new)
            try applied.validate(listening: listening)
            let certificate = try tls.map { _ in
                try TLSContext.load(applied.tlsCertificate, key: applied.tlsKey, http2: applied.http2)
            }
            try await hooks.reload(applied)
            // Nothing below fails, so that a refused reload changes nothing.
            if let certificate { tls?.use(certificate) }
            current.configuration = applied
            limiter.configure(rate: applied.rateLimit, burst: applied.rateBurst)
            handler.configure(applied)
            output.configure(level: applied.logLevel, redactor: Redactor(secrets: applied.secrets))
            metrics.registry.counter("vitrine_reloads_total", [("result", "success")]).increment(by: 1.0)
            logger.notice("The configuration is reloaded")
            if !fixed.isEmpty {
                logger.warning(
                    "Some settings need a restart", metadata: ["settings": .string(fixed.joined(separator: " "))])
            }
        } catch {
            metrics.registry.counter("vitrine_reloads_total", [("result", "failure")]).increment(by: 1.0)
            logger.error("The configuration is not reloaded", metadata: ["error": "\(error)"])
        }
        notifier.ready(status: "Serving on \(addresses.map(\.text).joined(separator: " "))")
    }
}

extension SocketAddress {
    /// The address as it is configured: `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/vitrine`.
    fileprivate var text: String {
        switch self {
        case .v4: "\(ipAddress ?? ""):\(port ?? 0)"
        case .v6: "[\(ipAddress ?? "")]:\(port ?? 0)"
        case .unixDomainSocket: "unix:\(pathname ?? "")"
        }
    }
}
