import Foundation
import Synchronization
import VitrineCore
import VitrineImaging

/// The renderer for the gallery: without signatures and presets, for files below the root only.
struct GalleryBackend: ImageBackend {
    let backend: ServerBackend

    func parse(_ target: ImageTarget) throws(RequestError) -> ImageURL {
        guard target.grammar != .thumbor else {
            throw RequestError(404, code: "not-found", reason: "There is no image at this path.")
        }
        let url = try backend.parse(target)
        guard url.source.hasPrefix("local:///") else { throw .forbiddenSource("the gallery shows local files only") }
        let path = url.source.dropFirst(9).prefix { $0 != "?" && $0 != "#" }
        guard let decoded = String(path).removingPercentEncoding else {
            throw .badSource("the path of the source is not percent-encoded correctly")
        }
        // Hidden files stay hidden.
        _ = try GalleryFiles.names(of: decoded)
        return url
    }

    func plan(for url: ImageURL) throws(RequestError) -> ServerBackend.Plan { backend.plan(for: url) }

    func resultInMemory(for plan: ServerBackend.Plan, format: FormatChoice) -> ImageResult? {
        backend.resultInMemory(for: plan, format: format)
    }

    func result(
        for plan: ServerBackend.Plan, format: FormatChoice, request: RequestInformation
    ) async throws -> ImageAnswer {
        try await backend.result(for: plan, format: format, request: request)
    }

    func information(for plan: ServerBackend.Plan, request: RequestInformation) async throws -> ImageAnswer {
        try await backend.information(for: plan, request: request)
    }
}

extension ServerConfiguration {
    /// The rules of URLs for the gallery's own pages, which need no signature.
    var ofGallery: ServerConfiguration {
        var configuration = self
        (configuration.keys, configuration.salts, configuration.trustedSignatures) = ([], [], [])
        (configuration.presets, configuration.onlyPresets, configuration.allowedOptions) = ([:], false, [])
        configuration.argumentsSeparator = ":"
        return configuration
    }
}

/// The sizes and placeholders of files, each read once.
final class GalleryDetails: Sendable {
    struct Details: Sendable {
        /// Upright pixels; 0 if the file cannot be read.
        var width: Int32 = 0
        var height: Int32 = 0
        /// The ThumbHash in base64; empty if the picture cannot be decoded, nil if that was not tried.
        var hash: String?
        /// Pages of a document, frames of an animation.
        var pages: Int32 = 1
        var duration: Float = 0
    }

    private static let maximumCount = 300_000
    /// Enough for the size in nearly all files.
    private static let headBytes = 64 << 10
    private static let longHeadBytes = 2 << 20

    private let files: GalleryFiles
    private let executor: BlockingExecutor
    private let known = Mutex<[GalleryFiles.Stamp: Details]>([:])

    init(_ files: GalleryFiles, _ executor: BlockingExecutor) { (self.files, self.executor) = (files, executor) }

    private func keep(_ details: Details, for stamp: GalleryFiles.Stamp) {
        known.withLock { known in
            if known.count >= Self.maximumCount, known[stamp] == nil {
                for old in known.keys.prefix(Self.maximumCount / 8) { known[old] = nil }
            }
            known[stamp] = details
        }
    }

    /// Returns the known details of files, after reading the headers of pictures.
    func sizes(of entries: ArraySlice<GalleryListing.Entry>, in folder: [String]) async -> [Details?] {
        let stamps = entries.map(\.stamp)
        let first = known.withLock { known in stamps.map { known[$0] } }
        let missing = zip(entries, first).filter { $0.1 == nil && $0.0.kind == .image }.map(\.0)
        if !missing.isEmpty {
            let files = files
            await withTaskGroup(of: Void.self) { group in
                // As many as there are threads, so that others have their turn.
                let size = max(8, (missing.count + 3) / 4)
                for start in stride(from: 0, to: missing.count, by: size) {
                    let part = missing[start..<min(start + size, missing.count)]
                    group.addTask { [self] in
                        guard !Task.isCancelled else { return }
                        await executor.run {
                            for entry in part {
                                self.keep(Self.header(of: entry, folder, files), for: entry.stamp)
                            }
                        }
                    }
                }
            }
        }
        return known.withLock { known in stamps.map { known[$0] } }
    }

    private static func header(
        of entry: GalleryListing.Entry, _ folder: [String], _ files: GalleryFiles
    ) -> Details {
        var details = Details()
        guard let names = try? GalleryFiles.names(of: entry.name), let opened = try? files.openFile(folder + names)
        else { return details }
        let file = GalleryOpenFile(opened)
        for count in [headBytes, longHeadBytes] {
            let bytes = GalleryFiles.beginning(of: file.descriptor, count: min(count, Int(file.stamp.bytes)))
            // Content of another kind would be opened by a helper program.
            if SourceHeader.mediaType(ofDocumentOrVideo: bytes) != nil { return details }
            if let header = try? SourceHeader(of: bytes) {
                details.width = Int32(clamping: header.size.width)
                details.height = Int32(clamping: header.size.height)
                details.pages = Int32(clamping: header.pageCount)
                details.duration = Float(header.duration ?? 0)
                return details
            }
            if bytes.count < count { return details }
        }
        return details
    }

    /// Computes placeholders that are not known, a few at a time, behind all other work.
    func addPlaceholders(
        to entries: ArraySlice<GalleryListing.Entry>, in folder: [String], by renderer: Renderer
    ) async {
        let missing = known.withLock { known in entries.filter { known[$0.stamp]?.hash == nil } }
        await withTaskGroup(of: Void.self) { group in
            for (index, entry) in missing.enumerated() {
                if index >= 2 { await group.next() }
                guard !Task.isCancelled else { return }
                group.addTask { await self.addPlaceholder(to: entry, in: folder, by: renderer) }
            }
        }
    }

    private func addPlaceholder(
        to entry: GalleryListing.Entry, in folder: [String], by renderer: Renderer
    ) async {
        let path = folder + entry.name.split(separator: "/").map(String.init)
        let url = ImageURL(grammar: .native, options: ProcessingOptions(), source: Self.source(path))
        var details = known.withLock { $0[entry.stamp] } ?? Details()
        do {
            let summary = try await renderer.info(for: url, priority: .low, deadline: .now + .seconds(60))
            (details.width, details.height) = (Int32(clamping: summary.width), Int32(clamping: summary.height))
            details.hash = summary.thumbHash ?? ""
            details.pages = Int32(clamping: summary.pages)
            details.duration = Float(summary.duration ?? 0)
        } catch {
            // Of those that are busy or cancelled, the next request asks again.
            guard [404, 413, 422].contains(error.status) else { return }
            details.hash = ""
        }
        keep(details, for: entry.stamp)
    }

    /// The address of a file below the root.
    static func source(_ names: [String]) -> String {
        let allowed = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
        return "local:///"
            + names.map { $0.addingPercentEncoding(withAllowedCharacters: allowed) ?? "" }.joined(separator: "/")
    }
}
