import CNetworkPeer
import Foundation
import Synchronization
import VitrineCore
import VitrineNetwork

func makeLoader(connections: Int, ca: String, allowsHTTP2: Bool = true) -> CurlLoader {
    var configuration = CurlLoader.Configuration()
    configuration.allowsHTTP2 = allowsHTTP2
    configuration.connectionsPerHost = connections
    if !ca.isEmpty { configuration.certificateAuthorities = ca }
    return CurlLoader(configuration)
}

/// What the tasks of a run share.
final class Tally: Sendable {
    let next = Atomic<Int>(0), bytes = Atomic<Int>(0)
}

func loadSmall(_ arguments: Arguments) async throws {
    let count = arguments.number(0, default: 1000), concurrency = arguments.number(1, default: 64)
    let loader = makeLoader(connections: concurrency, ca: arguments.text(2))
    let tally = Tally(), base = arguments.address
    try await report("vitrine", count: count) {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<concurrency {
                group.addTask {
                    while true {
                        let number = tally.next.add(1, ordering: .relaxed).oldValue
                        guard number < count else { return }
                        guard let url = URL(string: "\(base)/\(number % 1000).jpg") else { return }
                        let request = HTTPRequest(url: url)
                        let response = try await loader.load(request)
                        let body = try await response.body.collect()
                        tally.bytes.add(body.count, ordering: .relaxed)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
    precondition(tally.bytes.load(ordering: .relaxed) > 0)
}

/// The bare loop in C; into files of a directory unless that is empty.
func loadByPeer(_ arguments: Arguments, into directory: String) {
    let count = arguments.number(0, default: 1000)
    var bytes: Int64 = 0
    report(arguments.contender, count: count) {
        bytes = network_peer_small(
            arguments.address, Int32(count), Int32(arguments.number(1, default: 64)), arguments.text(2),
            Int32(arguments.number(3, default: 0)), directory)
    }
    precondition(bytes > 0)
}

/// The same, each into a file of its own. They are left for whoever removes the temporary directory: where many files
/// were just deleted, ext4 takes many times as long to create one.
func loadIntoFiles(_ arguments: Arguments) throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "files-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    loadByPeer(arguments, into: directory.path)
}

/// To a part file that can be gone on with, and then to its place.
func download(_ url: URL, to path: String, ca: String) async throws {
    let loader = NetworkLoader(makeLoader(connections: 10, ca: ca))
    try await report("download", count: 1) {
        let file = try await loader.download(HTTPRequest(url: url), to: path)
        precondition(file.length > 0)
    }
}

func loadFile(_ arguments: Arguments) async throws {
    guard let url = URL(string: arguments.address) else { return }
    if arguments.contender == "download" {
        return try await download(url, to: arguments.text(0), ca: arguments.text(2))
    }
    let delay = arguments.number(1, default: 0)
    let loader = makeLoader(connections: 10, ca: arguments.text(2), allowsHTTP2: false)
    let descriptor = open(arguments.text(0), O_CREAT | O_WRONLY | O_TRUNC, 0o644)
    precondition(descriptor >= 0)
    var total = 0
    try await report("vitrine", count: 1) {
        var request = HTTPRequest(url: url)
        request.acceptsCompression = false
        let response = try await loader.load(request)
        _ = try await response.body.read { bytes in
            var offset = 0
            while offset < bytes.count {
                let count = write(descriptor, bytes.baseAddress! + offset, bytes.count - offset)
                precondition(count > 0)
                offset += count
            }
            total += bytes.count
            if delay > 0 { usleep(UInt32(delay * bytes.count / 1_000_000)) }
        }
    }
    close(descriptor)
    print("bytes", total)
}
