import Foundation
import ServerTestSupport
import Synchronization
import Testing

import VitrineServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// `vitrine-server` as a process of its own, perhaps with a listening socket as descriptor 3. It ends with the test.
final class ServerProcess: Sendable {
    /// Its output so far.
    private final class Said: Sendable { let bytes = Mutex<[UInt8]>([]) }

    private let process: ChildProcess
    private let said: Said

    static var program: String {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        // Beside the tests, or beside the program that runs them.
        for argument in [own] + CommandLine.arguments {
            let path = URL(fileURLWithPath: argument).deletingLastPathComponent()
                .appendingPathComponent("vitrine-server")
            if FileManager.default.isExecutableFile(atPath: path.path) { return path.path }
        }
        return "vitrine-server"
    }

    init(_ arguments: [String], environment: [String: String] = [:], socket: Int32? = nil) throws {
        var variables = environment
        variables["PATH"] = variables["PATH"] ?? "/usr/bin:/bin"
        var words = [Self.program] + arguments
        if socket != nil {
            variables["LISTEN_FDS"] = "1"
            // Only the process itself knows its identifier.
            words = ["/bin/sh", "-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""] + words
        }
        let said = Said()
        self.said = said
        process = try ChildProcess(words[0], Array(words.dropFirst()), environment: variables, socket: socket) { part in
            said.bytes.withLock { $0 += part }
        }
    }

    deinit { process.end() }

    var pid: pid_t { process.identifier }
    var output: String { String(decoding: said.bytes.withLock { $0 }, as: UTF8.self) }
    /// The exit status, or the negative number of a signal; nil while it runs.
    var status: Int32? { process.status }

    func send(_ signal: Int32) { process.send(signal) }

    func waitUntilReady() async throws {
        try await eventually("the program is ready: \(output)") {
            self.output.contains("The server is ready") || self.status != nil
        }
    }

    @discardableResult
    func waitUntilEnd() async throws -> Int32? {
        try await eventually("the program has ended") { self.status != nil }
        return status
    }

    /// The ports of its listeners, as the log says.
    func ports() async throws -> (main: Int, admin: Int) {
        try await waitUntilReady()
        let line = try #require(
            output.split(separator: "\n").first { $0.contains("The server is ready") }, "\(output)")
        let values = try SettingValue.json(Data(line.utf8))
        func port(_ name: String) -> Int {
            guard case .text(let text)? = values[name] else { return 0 }
            return Int(text.split(separator: ":").last ?? "") ?? 0
        }
        return (port("addresses"), port("admin"))
    }
}

/// A socket that the service manager would listen on for messages.
private final class NotifySocket {
    let path: String
    private let descriptor: Int32

    /// - Parameter isAbstract: Whether the name is no file.
    init(isAbstract: Bool = false) throws {
        let name = "vitrine-\(UUID().uuidString.prefix(8)).notify"
        path = isAbstract ? "@\(name)" : "/tmp/\(name)"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        if isAbstract { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = socklen_t(isAbstract ? 2 + bytes.count : MemoryLayout<sockaddr_un>.size)
        var limit = timeval(tv_sec: 600, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let bound = withUnsafeBytes(of: &address) {
            $0.baseAddress.map { Glibc.bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self), size) }
        }
        try #require(bound == 0)
    }

    deinit {
        close(descriptor)
        unlink(path)
    }

    /// The next message.
    func receive() throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        try #require(count > 0)
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// Messages up to one that begins so.
    func receive(until begin: String) throws -> [String] {
        var messages: [String] = []
        repeat { messages.append(try receive()) } while !messages[messages.count - 1].hasPrefix(begin)
        return messages
    }
}

/// A listening socket on a free port of loopback.
func listeningSocket() throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return try withUnsafeMutableBytes(of: &address) { bytes in
        let base = try #require(bytes.baseAddress).assumingMemoryBound(to: sockaddr.self)
        try #require(Glibc.bind(descriptor, base, size) == 0 && listen(descriptor, 4096) == 0)
        try #require(getsockname(descriptor, base, &size) == 0)
        return (descriptor, Int(UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port)))
    }
}

/// Processes that tests start.
@Suite struct ChildProcessTests {
    /// Descriptors that this process closes, a child would keep open.
    @Test func childrenInheritNoDescriptors() async throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for descriptor in ends { close(descriptor) } }
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(ends[1])")
        let process = try ServerProcess(ImageServerProcess.loopback)
        try await process.waitUntilReady()
        let program = try Program("/bin/sleep", ["600"])
        for child in [process.pid, program.identifier] {
            let directory = "/proc/\(child)/fd"
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            // One may have been closed meanwhile.
            let targets = names.compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\($0)")
            }
            #expect(!targets.isEmpty && !targets.contains(own), "\(targets)")
        }
    }

    /// A test that fails leaves none behind.
    @Test func serversEndWithTheirTest() async throws {
        func start() async throws -> pid_t {
            let process = try ServerProcess(ImageServerProcess.loopback)
            try await process.waitUntilReady()
            return process.pid
        }
        let process = try await start()
        try await eventually("the server has ended") { kill(process, 0) != 0 }
    }
}

@Suite(.serialized) struct ProgramTests {
    private let free = ["--bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0", "--lame-duck", "0"]

    @Test(arguments: [
        (["--qualty", "3"], "--qualty: there is no such flag; did you mean “quality”?; see --help"),
        (["--key", "00"], "key: there are 1 keys and 0 salts; every key needs a salt of its own"),
        (["--bind", "0.0.0.0:0"], "bind: 0.0.0.0:0 is reachable from other machines, but URLs are not signed; "
            + "set key and salt, or allow-unsigned"),
        (["--local-root", "/nonexistent"], "local-root: /nonexistent is not a readable directory"),
        (["--disk-cache", "/proc/x"], "disk-cache: /proc/x is not a writable directory"),
        (["--check-config", "--tls-certificate", "/dev/null", "--tls-key", "/dev/null"],
            "tls-certificate: /dev/null is not a PEM file of certificates"),
        (["--explain"], "--explain: its value is missing"),
    ] as [([String], String)])
    func refusedConfigurationsAreOneLineAndStatus78(_ arguments: [String], _ line: String) async throws {
        let process = try ServerProcess(arguments)
        #expect(try await process.waitUntilEnd() == 78)
        #expect(process.output == "vitrine-server: \(line)\n")
    }

    @Test func aPortInUseIsOneLineAndStatus78() async throws {
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        let process = try ServerProcess(["--bind", "127.0.0.1:\(port)", "--admin-bind", "off"])
        #expect(try await process.waitUntilEnd() == 78)
        #expect(process.output == "vitrine-server: bind: 127.0.0.1:\(port) is in use by another program\n")
    }

    @Test func configurationIsPrintedAndChecked() async throws {
        let printing = try ServerProcess(
            ["--print-config", "--key", "736563726574", "--salt", "00"], environment: ["VITRINE_QUALITY": "42"])
        #expect(try await printing.waitUntilEnd() == 0)
        #expect(printing.output.contains("quality = 42\n"))
        #expect(printing.output.contains("ttl = 31536000  # default\n"))
        #expect(printing.output.contains("key = [\"***\"]\n") && !printing.output.contains("736563726574"))
        let checking = try ServerProcess(["--check-config"], environment: ["IMGPROXY_USE_ETAG": "1"])
        #expect(try await checking.waitUntilEnd() == 0)
        #expect(checking.output == "vitrine-server: IMGPROXY_USE_ETAG has no effect\n")
        let help = try ServerProcess(["--help"])
        #expect(try await help.waitUntilEnd() == 0)
        for setting in ServerSettings.all { #expect(help.output.contains("--\(setting.name) ")) }
    }

    @Test(arguments: [false, true])
    func theServiceManagerIsTold(_ isAbstract: Bool) async throws {
        let messages = try await onThread { () throws -> [String] in
            let socket = try NotifySocket(isAbstract: isAbstract)
            let process = try ServerProcess(
                free, environment: ["NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "100000"])
            var messages = try socket.receive(until: "READY=1")
            messages += try socket.receive(until: "WATCHDOG=1")
            messages += try socket.receive(until: "WATCHDOG=1")
            process.send(SIGHUP)
            messages += try socket.receive(until: "RELOADING=1")
            messages += try socket.receive(until: "READY=1")
            process.send(SIGTERM)
            messages += try socket.receive(until: "STOPPING=1")
            messages.append("\(process.pid)")
            return messages
        }
        let pid = messages[messages.count - 1]
        let ready = try #require(messages.first { $0.hasPrefix("READY=1") })
        #expect(ready.contains("\nMAINPID=\(pid)") && ready.contains("\nSTATUS=Serving on "))
        let reloading = try #require(messages.first { $0.hasPrefix("RELOADING=1\nMONOTONIC_USEC=") })
        let time = try #require(Int64(reloading.split(separator: "=").last ?? ""))
        #expect(abs(monotonicNanoseconds() / 1000 - time) < 60_000_000)
    }

    @Test func nothingIsSaidWithoutAServiceManager() {
        let notifier = ServiceNotifier(environment: ["WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"])
        #expect(notifier.watchdogInterval == nil)
        notifier.ready(status: "x")
        ServiceNotifier(environment: ["NOTIFY_SOCKET": "/nonexistent"]).stopping()
        #expect(
            ServiceNotifier(environment: ["WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "\(getpid())"])
                .watchdogInterval == .milliseconds(500))
    }

    @Test(arguments: ["/metrics", "/debug", "/config", "/health"])
    func answersOfTheAdminListenerKeepNoMemory(_ path: String) async throws {
        let process = try ServerProcess(free)
        let port = try await process.ports().admin
        let kilobytes = try await onThread { () throws -> [Int] in
            let client = try PlainClient(port: port)
            func poll(_ count: Int) throws -> Int {
                for _ in 0..<count { #expect(try client.request(path).status == 200) }
                let text = try String(contentsOfFile: "/proc/\(process.pid)/statm", encoding: .utf8)
                return (Int(text.split(separator: " ")[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) / 1024
            }
            return [try poll(200), try poll(600)]
        }
        // Metrics once kept 32 KiB an answer.
        #expect(kilobytes[1] - kilobytes[0] < 600 * 8, "\(kilobytes)")
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0)
    }

    @Test func inheritedSocketsTakeThePlaceOfAddresses() async throws {
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        // The address in the configuration cannot be used, so that the socket must be.
        let process = try ServerProcess(
            ["--bind", "127.0.0.1:1", "--admin-bind", "off", "--lame-duck", "0"], socket: descriptor)
        #expect(try await process.ports().main == port)
        #expect(try await get(port, "/health").body == "ok\n")
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0)
    }

    @Test func socketsOfTheAdminListenerAreFoundByName() async throws {
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        let process = try ServerProcess(
            free, environment: ["LISTEN_FDNAMES": "admin"], socket: descriptor)
        #expect(try await process.ports().admin == port)
        #expect(try await get(port, "/config").status == 200)
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0)
    }

    @Test func descriptorsThatDoNotListenAreRefused() async throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        let process = try ServerProcess(free, socket: descriptor)
        #expect(try await process.waitUntilEnd() == 78)
        #expect(process.output == "vitrine-server: LISTEN_FDS: descriptor 3 is not a listening socket\n")
        // The variables of another process are left alone.
        #expect(try InheritedSocket.all(environment: ["LISTEN_PID": "1", "LISTEN_FDS": "5"]).isEmpty)
        #expect(throws: ConfigurationError("LISTEN_FDS: “x” is not a number of sockets")) {
            try InheritedSocket.all(environment: ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": "x"])
        }
    }

    @Test func theProgramIsReplacedWithoutAFailedRequest() async throws {
        let (descriptor, port) = try listeningSocket()
        defer { close(descriptor) }
        let arguments = ["--admin-bind", "off", "--lame-duck", "0.5", "--log-requests=false"]
        let load = KeepAliveLoad()
        let first = try ServerProcess(arguments, socket: descriptor)
        try await first.waitUntilReady()
        load.start(clients: 8, port: port, path: "/health", reconnects: true)
        try await eventually("clients are served") { load.answered > 200 }
        first.send(SIGTERM)
        #expect(try await first.waitUntilEnd() == 0)
        // Connections wait in the queue of the socket.
        let before = load.answered
        let second = try ServerProcess(arguments, socket: descriptor)
        try await eventually("clients are served again") { load.answered > before + 200 }
        load.stop()
        try await eventually("clients have ended") { !load.isRunning }
        #expect(load.failures.isEmpty, "\(load.failures)")
        #expect(load.closed >= 8)
        second.send(SIGTERM)
        #expect(try await second.waitUntilEnd() == 0)
    }

    @Test func reloadReadsTheFileAnew() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).toml")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("rate-limit = 0\n".utf8).write(to: file)
        let process = try ServerProcess(free + ["--config", file.path])
        let ports = try await process.ports()
        for _ in 0..<5 { #expect(try await get(ports.main, "/a").status != 429) }
        try Data("rate-limit = 0.001\nrate-burst = 1\nquality = 12\n".utf8).write(to: file)
        process.send(SIGHUP)
        try await eventually("the configuration is reloaded") { process.output.contains("is reloaded") }
        #expect(try await get(ports.admin, "/config").body.contains("\"quality\":12"))
        #expect(try await get(ports.main, "/a").status != 429)
        #expect(try await get(ports.main, "/a").status == 429)
        // A broken file is one line in the log, and the server goes on.
        try Data("quality = 0\n".utf8).write(to: file)
        process.send(SIGHUP)
        try await eventually("the file is refused") { process.output.contains("is not reloaded") }
        #expect(process.output.contains("quality: 0 is not between 1 and 100"))
        #expect(try await get(ports.admin, "/config").body.contains("\"quality\":12"))
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 0)
    }

    @Test func aSecondSignalEndsTheProgramAtOnce() async throws {
        let process = try ServerProcess(
            ["--bind", "127.0.0.1:0", "--admin-bind", "off", "--lame-duck", "300"])
        let port = try await process.ports().main
        process.send(SIGTERM)
        try await eventually("the program stops") { try await get(port, "/ready").status == 503 }
        #expect(process.status == nil)
        process.send(SIGTERM)
        #expect(try await process.waitUntilEnd() == 143)
    }

    // MARK: systemd

    private static let analyze = "/usr/bin/systemd-analyze"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: analyze), "systemd-analyze is not installed"))
    func unitsAreValidAndClosed() async throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Distribution")
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let service = directory.appendingPathComponent("vitrine-server.service").path
        let socket = directory.appendingPathComponent("vitrine-server.socket").path
        // The program need not be installed to check its unit.
        let text = try String(contentsOf: sources.appendingPathComponent("vitrine-server.service"), encoding: .utf8)
        #expect(text.contains("\nExecStart=/usr/bin/vitrine-server "))
        try Data(text.replacing("/usr/bin/vitrine-server", with: "/bin/true").utf8)
            .write(to: URL(fileURLWithPath: service))
        try FileManager.default.copyItem(
            atPath: sources.appendingPathComponent("vitrine-server.socket").path, toPath: socket)
        let verified = try await run(Self.analyze, ["verify", service, socket])
        #expect(verified.status == 0 && verified.output.isEmpty, "\(verified.output)")
        let security = try await run(Self.analyze, ["security", "--offline=true", service])
        let line = try #require(security.output.split(separator: "\n").first { $0.contains("Overall exposure level") })
        let level = try #require(line.firstMatch(of: /: (\d+\.\d+)/).flatMap { Double($0.1) })
        #expect(level <= 2.5, "\(line)")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: analyze), "systemd-analyze is not installed"))
    func unitsOfAFleetAreValid() async throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Distribution")
        let directory = try TemporaryDirectory()
        for (name, place) in [
            ("vitrine-server.service", ""), ("fleet/vitrine-warm.service", ""), ("fleet/vitrine-warm.timer", ""),
            ("fleet/vitrine-server.conf", "vitrine-server.service.d/"),
        ] {
            let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
            if !place.isEmpty {
                try FileManager.default.createDirectory(
                    atPath: directory.path + "/" + place, withIntermediateDirectories: true)
            }
            let file = place + (name.split(separator: "/").last ?? "")
            try directory.write(text.replacing("/usr/bin/vitrine-server", with: "/bin/true"), to: file)
            // Each variable is a setting.
            var variables: [String: String] = [:]
            for match in text.matches(of: /VITRINE_([A-Z0-9_]+)=(\S+)/) {
                variables["VITRINE_" + match.1] = String(match.2)
            }
            for variable in variables.keys {
                #expect(ServerSettings.all.contains { $0.variable == variable }, "\(name): \(variable)")
            }
        }
        let units = ["vitrine-server.service", "vitrine-warm.service", "vitrine-warm.timer"]
        let verified = try await run(Self.analyze, ["verify"] + units.map { directory.path + "/" + $0 })
        #expect(verified.status == 0 && verified.output.isEmpty, "\(verified.output)")
    }

    private static let nginx = "/usr/sbin/nginx"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: nginx), "nginx is not installed"))
    func theBalancerOfAFleetIsValid() async throws {
        let fleet = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Distribution/fleet")
        let directory = try TemporaryDirectory()
        let text = try String(contentsOf: fleet.appending(path: "nginx.conf"), encoding: .utf8)
        // Its names are those of containers.
        try directory.write(text.replacing(/node\d:/, with: "127.0.0.1:"), to: "nginx.conf")
        let path = directory.path
        let checked = try await run(
            Self.nginx, ["-t", "-c", path + "/nginx.conf", "-p", path, "-g", "pid \(path)/pid; error_log stderr;"])
        #expect(checked.status == 0, "\(checked.output)")
        let compose = try String(contentsOf: fleet.appending(path: "compose.yaml"), encoding: .utf8)
        for match in compose.matches(of: /(VITRINE_[A-Z0-9_]+):[ ]/) {
            #expect(ServerSettings.all.contains { $0.variable == String(match.1) }, "\(match.1)")
        }
        let parser = "import sys, yaml; print(*sorted(yaml.safe_load(open(sys.argv[1]))['services']))"
        let parsed = try await run(
            "/usr/bin/env", ["python3", "-c", parser, fleet.appending(path: "compose.yaml").path])
        // The parser may not be installed.
        if !parsed.output.contains("ModuleNotFoundError") {
            #expect(parsed.output.hasPrefix("balancer buckets node1 node2 node3 s3 valkey"), "\(parsed.output)")
        }
    }
}
