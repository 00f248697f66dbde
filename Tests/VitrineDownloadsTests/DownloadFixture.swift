#if os(Linux)
import Foundation
import TestSupport
import VitrineCore
import VitrineDownloads
import VitrineNetwork

/// A directory for files and one for the journal, and managers over them.
struct DownloadFixture {
    let files: TemporaryDirectory
    let journal: TemporaryDirectory

    init() throws {
        files = try TemporaryDirectory()
        journal = try TemporaryDirectory()
    }

    /// A manager of its own.
    func manager(_ change: (inout DownloadManager.Configuration) -> Void = { _ in }) -> DownloadManager {
        var configuration = DownloadManager.Configuration()
        configuration.directory = files.path
        configuration.journalDirectory = journal.path
        configuration.reservedSpace = .zero
        change(&configuration)
        return DownloadManager(configuration)
    }

    func bytes(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: files.file(name)).map { Array($0) }
    }
}

/// Bytes of which no two neighbourhoods are alike.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13 ^ $0) }
}

/// A request that is not in a hurry, as the machine may be busy.
func request(_ url: URL, _ change: (inout DownloadRequest) -> Void = { _ in }) -> DownloadRequest {
    var request = DownloadRequest(url)
    change(&request)
    return request
}

/// The code of the error a call ends with; nil without one.
func code(_ body: () async throws -> Void) async -> Int? {
    do {
        try await body()
        return nil
    } catch let error as DownloadError {
        return error.code
    } catch {
        return 0
    }
}

extension Download {
    /// Returns when a status fits.
    func reaches(_ isReached: @Sendable (DownloadStatus) -> Bool) async {
        for await status in updates where isReached(status) { return }
    }
}
#endif
