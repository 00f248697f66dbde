// A list of downloads with progress bars: paused halfway, and resumed by the next run of the program.
import ExampleServer
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-downloads-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

// The first transfer stalls after two fifths of the film.
let film = [UInt8](repeating: 7, count: 500_000), book = [UInt8](repeating: 9, count: 30_000)
let server = try ExampleServer { request in
    if request.path == "/book.pdf" { return .body(book, type: "application/pdf") }
    return .body(film, type: "video/x-matroska", stallingAfter: request.start == nil ? 200_000 : nil)
}

var configuration = DownloadManager.Configuration()
configuration.directory = directory + "/files"
configuration.journalDirectory = directory + "/journal"

func show(_ downloads: [Download]) {
    for status in downloads.compactMap(\.status).sorted(by: { $0.path < $1.path }) {
        let done = Int((status.fraction ?? 0) * 20)
        let bar = String(repeating: "#", count: done) + String(repeating: ".", count: 20 - done)
        print(bar, status.url.lastPathComponent, status.state)
    }
}

let manager = DownloadManager(configuration)
let first = try await manager.start(server.url("/video.mkv").absoluteString)
let second = try await manager.start(server.url("/book.pdf").absoluteString)
for await status in first.updates where status.received >= 200_000 { break }
try await first.pause()
_ = try await second.file
show([first, second])
await manager.close()

print("Another run:")
let later = DownloadManager(configuration)
let downloads = try await later.restore()
for download in downloads where download.status?.state == .paused { try await download.resume() }
try await later.settled()
show(downloads)
let bytes = FileManager.default.contents(atPath: configuration.directory + "/video.mkv")
print("whole:", bytes.map { [UInt8]($0) == film } ?? false)
print("the rest was asked for:", server.requests.contains { $0.start == 200_000 })
await later.close()
