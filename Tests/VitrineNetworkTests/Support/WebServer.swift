#if os(Linux)
import Foundation
import TestSupport
import VitrineCore

/// nginx on 127.0.0.1 with a certificate of its own for `localhost`: a server that nobody here has written.
///
/// Speaks HTTP/1.1 and HTTP/2. What is below `/slow/` comes at a megabyte a second; what is below `/known/` needs a
/// client's certificate.
final class WebServer: Sendable {
    static let isAvailable = executable != nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")
    private static let executable = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// The server's certificate, the client's, its key, and the same key encrypted with `secret`.
    let certificate: String, client: String, clientKey: String, lockedKey: String
    private let port: Int
    private let reserved: ReservedPort
    private let directory: TemporaryDirectory
    private let process: Locked<Process?>

    init() throws {
        directory = try TemporaryDirectory()
        reserved = try ReservedPort()
        port = reserved.number
        certificate = directory.file("server.pem")
        client = directory.file("client.pem")
        clientKey = directory.file("client-key.pem")
        lockedKey = directory.file("locked-key.pem")
        for (name, subject) in [("server", "localhost"), ("client", "somebody")] {
            try Self.openssl([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=\(subject)", "-addext",
                "subjectAltName=DNS:\(subject)", "-keyout", directory.file(name + "-key.pem"), "-out",
                directory.file(name + ".pem"),
            ])
        }
        try Self.openssl(["rsa", "-aes256", "-passout", "pass:secret", "-in", clientKey, "-out", lockedKey])
        for name in ["root", "root/slow", "root/known", "temporary"] {
            try FileManager.default.createDirectory(
                atPath: directory.file(name), withIntermediateDirectories: true)
        }
        try directory.write(Self.configuration(directory.path, port), to: "nginx.conf")
        let server = Self.process(
            Self.executable ?? "", ["-c", directory.file("nginx.conf"), "-p", directory.path, "-e", "error.log"])
        try server.run()
        process = Locked(server)
    }

    deinit { stop() }

    func stop() { process.withLock { $0.take() }?.end() }

    /// An address on the server, which is encrypted.
    func url(_ target: String) -> URL {
        URL(string: "https://localhost:\(port)\(target)") ?? URL(filePath: "/")
    }

    /// Puts a file where the server finds it.
    func write(_ bytes: [UInt8], to target: String) throws {
        try Data(bytes).write(to: URL(filePath: directory.file("root" + target)))
    }

    /// Which connection each request for a target came by.
    func connections(for target: String) throws -> [String] {
        (directory.read("access.log") ?? "").split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            return words.count == 2 && words[1] == target ? String(words[0]) : nil
        }
    }

    private static func configuration(_ directory: String, _ port: Int) -> String {
        """
        daemon off;
        master_process off;
        pid \(directory)/nginx.pid;
        error_log \(directory)/error.log;
        events { worker_connections 256; }
        http {
            log_format connections '$connection $uri';
            access_log \(directory)/access.log connections;
            client_body_temp_path \(directory)/temporary/body;
            proxy_temp_path \(directory)/temporary/proxy;
            fastcgi_temp_path \(directory)/temporary/fastcgi;
            uwsgi_temp_path \(directory)/temporary/uwsgi;
            scgi_temp_path \(directory)/temporary/scgi;
            server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(directory)/server.pem;
                ssl_certificate_key \(directory)/server-key.pem;
                ssl_client_certificate \(directory)/client.pem;
                ssl_verify_client optional;
                root \(directory)/root;
                location /slow/ { limit_rate 1m; }
                location /known/ {
                    if ($ssl_client_verify != SUCCESS) { return 403; }
                }
            }
        }
        """
    }

    private static func openssl(_ arguments: [String]) throws {
        let process = process("/usr/bin/openssl", arguments)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableLoad) }
    }

    private static func process(_ path: String, _ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return process
    }
}
#endif
