import DemoSupport
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineViews

/// The pictures of some folders, or of some addresses, and how each is loaded.
@MainActor
final class PhotoLibrary {
    /// Paths or addresses, in order.
    let identifiers: [String]
    /// Loads the images of files and addresses.
    let service: ImagePipeline
    /// Removed in the end; nil for a directory of the user's.
    private let temporary: String?
    private var sources: [String: ImageFileSource] = [:]

    init(_ arguments: DemoArguments) {
        let state: String
        if let named = arguments["--state"] {
            (state, temporary) = (named, nil)
        } else if arguments.has("--auto") {
            state = path(NSTemporaryDirectory(), "vitrine-grid-\(UUID().uuidString)")
            temporary = state
        } else {
            (state, temporary) = (CacheConfiguration.defaultRoot, nil)
        }
        let capacity = ByteCount.megabytes(arguments.number("--memory", default: 64))
        var thumbnails = ImagePipeline.Configuration(name: "grid", root: state)
        thumbnails.memoryCapacity = capacity
        service = ImagePipeline(thumbnails)
        if let list = arguments["--urls"] {
            let text = (try? String(contentsOfFile: list, encoding: .utf8)) ?? ""
            identifiers = text.split(whereSeparator: \.isNewline)
                .map { String($0).trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
        } else {
            identifiers = arguments.rest.flatMap(Self.files)
        }
    }

    /// Files with names of pictures, below a folder. What they are is told by their content, later.
    private static func files(in folder: String) -> [String] {
        let extensions: Set = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "avif", "heic", "jxl", "tif", "tiff"]
        guard let names = FileManager.default.enumerator(atPath: folder) else { return [] }
        return names.compactMap { $0 as? String }
            .filter { extensions.contains(($0 as NSString).pathExtension.lowercased()) }
            .sorted().map { path(folder, $0) }
    }

    /// What a picture may occupy in memory, all together.
    var memoryCapacity: ByteCount { service.configuration.memoryCapacity }

    /// The request of a cell.
    func request(_ identifier: String) -> ImageRequest {
        if identifier.hasPrefix("http"), let url = URL(string: identifier) { return ImageRequest(url) }
        return ImageRequest(source(identifier))
    }

    /// A file whose identity is known, so that what is in memory can be shown at once.
    private func source(_ path: String) -> ImageFileSource {
        if let known = sources[path] { return known }
        var source = ImageFileSource(path: path)
        source.identifier = try? source.identity()
        sources[path] = source
        return source
    }

    /// Whether it may be had later: after how long to try again.
    static func retryDelay(_ error: any Error, _ attempt: Int) -> Duration? {
        var error = error
        if case ImagePipelineError.underlying(_, let below) = error { error = below }
        guard let network = error as? NetworkError, network.isRetryable else { return nil }
        return .milliseconds(500 * min(16, 1 << min(attempt, 4)))
    }

    /// Removes what was kept for this run only.
    func cleanUp() {
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}
