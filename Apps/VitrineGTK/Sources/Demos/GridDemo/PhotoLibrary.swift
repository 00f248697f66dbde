import DemoSupport
import Foundation
import VitrineCache
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineViews

/// The images of directories or of a list of URLs, and the way to load each.
@MainActor
final class PhotoLibrary {
    /// The paths or URLs, in order.
    let identifiers: [String]
    /// Loads the images of files and addresses.
    let service: ImagePipeline
    /// A temporary directory, removed at the end; nil for a directory of the user.
    private let temporary: String?

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

    /// Returns files with names of images in a directory. Their content is checked later.
    private static func files(in folder: String) -> [String] {
        let extensions: Set = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "avif", "heic", "jxl", "tif", "tiff"]
        guard let names = FileManager.default.enumerator(atPath: folder) else { return [] }
        return names.compactMap { $0 as? String }
            .filter { extensions.contains(($0 as NSString).pathExtension.lowercased()) }
            .sorted().map { path(folder, $0) }
    }

    /// The total memory limit for images.
    var memoryCapacity: ByteCount { service.configuration.memoryCapacity }

    /// The request of a cell.
    func request(_ identifier: String) -> ImageRequest {
        if identifier.hasPrefix("http"), let url = URL(string: identifier) { return ImageRequest(url) }
        return ImageRequest(.file(identifier))
    }

    /// Returns the name of an image: the last part of its path or URL.
    nonisolated static func name(_ identifier: String) -> String {
        identifier.split(separator: "/").last.map(String.init) ?? identifier
    }

    /// Returns the delay before the next attempt after a failure.
    static func retryDelay(_ error: any Error, _ attempt: Int) -> Duration? {
        var error = error
        if case ImagePipelineError.underlying(_, let below) = error { error = below }
        guard let network = error as? NetworkError, network.isRetryable else { return nil }
        return .milliseconds(500 * min(16, 1 << min(attempt, 4)))
    }

    /// Removes the temporary files of this run.
    func cleanUp() {
        if let temporary { try? FileManager.default.removeItem(atPath: temporary) }
    }
}
