// A program that downloads one file by a manager, for tests that kill it: the next one goes on where it was. It prints
// how far it has come, and the path at the end. Its words: the directories of journal and files, the address, and as
// `name=value` the directory of the agent's socket if an agent is to do it, the number of connections, by how many
// seconds the clock is wrong, how many bytes stay free on the disk, and `crash=WORD` to end at addresses with a word.
// With `restore=1` it begins nothing and reports how all of the list have ended. With `scarce=1` it loads the address
// twice by one loader: without descriptors, and with them. With `place=1` it places a part file in the directory of files
// twice, in the same way. With `open=1` it only opens the first word as a database.
import Dispatch
import Foundation
import VitrineCore
import VitrineDatabase
import VitrineDownloads
import VitrineNetwork

@main
enum DownloadChild {
    static func main() async {
        let words = CommandLine.arguments
        guard words.count >= 4 else { exit(64) }
        let options = Dictionary(
            words.dropFirst(4).map { ($0.prefix { $0 != "=" }, $0.drop { $0 != "=" }.dropFirst()) },
            uniquingKeysWith: { $1 })
        var configuration = DownloadManager.Configuration()
        configuration.journalDirectory = words[1]
        configuration.directory = words[2]
        configuration.reservedSpace = ByteCount(options["reserve"].flatMap { Int($0) } ?? 0)
        if options["scarce"] != nil, let url = URL(string: words[3]) { return await loadWithoutDescriptors(url) }
        if options["place"] != nil { return placeWithoutDescriptors(FilePath.join(words[2], "file")) }
        if options["open"] != nil { return openDatabase(words[1]) }
        if let directory = options["agent"] {
            configuration.mode = .agent
            configuration.agentDirectory = String(directory)
        }
        if let error = options["clock"].flatMap({ Int($0) }) {
            configuration.clock = WallClock { WallClock.system.now + .seconds(error) }
        }
        if let words = options["crash"] { configuration.client = EndingLoader(word: String(words)) }
        let manager = DownloadManager(configuration)
        do {
            if options["restore"] != nil { return try await restore(manager) }
            guard let url = URL(string: words[3]) else { exit(64) }
            var request = DownloadRequest(url)
            request.connections = options["connections"].flatMap { Int($0) } ?? 1
            let download = try await manager.start(request)
            report("started \(download.id)")
            let following = Task {
                for await status in download.updates { report("received \(status.received)") }
            }
            let path = try await download.file
            await following.value
            report("file \(path)")
        } catch {
            report("error \(error.code) \(error)")
            exit(1)
        }
    }

    /// Goes on with the list, and reports how each download has ended.
    private static func restore(_ manager: DownloadManager) async throws(DownloadError) {
        let downloads = try await manager.restore()
        try await manager.settled()
        for download in downloads {
            guard let status = download.status else { continue }
            report("\(status.state.name) \(status.failure?.code ?? 0) \(FilePath.name(of: status.path))")
        }
        await manager.close()
    }

    private static func openDatabase(_ path: String) {
        do throws(DatabaseError) { _ = try Database(path: path) } catch { report("error \(error)") }
    }

    private static func loadWithoutDescriptors(_ url: URL) async {
        // Dispatch ends the process if it has no descriptors for its timers, so those of each clock are made before.
        try? await Task.sleep(for: .milliseconds(1))
        await withCheckedContinuation { next in
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { next.resume() }
        }
        await withCheckedContinuation { next in
            DispatchQueue.global().asyncAfter(wallDeadline: .now() + .milliseconds(1)) { next.resume() }
        }
        var limit = takeDescriptors()
        let loader = CurlLoader()
        for attempt in ["without", "with"] {
            do throws(NetworkError) {
                let response = try await loader.load(HTTPRequest(url: url))
                report("\(attempt) \(response.head.status)")
            } catch {
                report("\(attempt) \(error)")
            }
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }

    private static func placeWithoutDescriptors(_ path: String) {
        let part = PartialFile.path(for: path)
        guard let file = try? PartialFile.open(part, identity: "a") else { exit(1) }
        var limit = takeDescriptors()
        for attempt in ["without", "with"] {
            let isPlaced = (try? file.place(at: path, isDurable: true)) != nil
            let isConsistent = FilePath.exists(path) == isPlaced && FilePath.exists(part) != isPlaced
            report("\(attempt) \(isPlaced) \(isConsistent ? "consistent" : "inconsistent")")
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }

    /// Leaves no free descriptor. Returns the limit that was there.
    private static func takeDescriptors() -> rlimit {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let free = dup(0)
        close(free)
        var none = limit
        none.rlim_cur = rlim_t(free)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none)
        return limit
    }

    private static func report(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}

/// Ends the program, as a defect would, when it is to load an address that has a word in it.
private struct EndingLoader: HTTPTransport {
    let word: String
    private let loader = CurlLoader()

    func load(_ request: HTTPRequest) async throws(NetworkError) -> HTTPResponse {
        if request.url.path.contains(word) { kill(getpid(), SIGKILL) }
        return try await loader.load(request)
    }
}
