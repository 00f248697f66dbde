import Foundation
import Synchronization
import VitrineCore
import VitrineImaging
import VitrinePipeline

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
        /// Upright pixels; 0 if they are not known.
        var width: Int32 = 0
        var height: Int32 = 0
        /// The ThumbHash in base64; nil if it has not been made.
        var hash: String?
        /// Pages of a document, frames of an animation.
        var pages: Int32 = 1
        var duration: Float = 0
        /// The code of the error that every image of the file ends in; nil if none is known.
        var failure: String?

        static func failed(_ error: RequestError) -> Details {
            var details = Details()
            details.failure = error.code
            return details
        }
    }

    private typealias Found = [GalleryFiles.Stamp: Details]

    private static let maximumCount = 300_000
    /// Enough for the size in nearly all files.
    private static let headBytes = 64 << 10
    private static let longHeadBytes = 2 << 20

    private let files: GalleryFiles
    private let executor: BlockingExecutor
    private let known = Mutex<Found>([:])

    init(_ files: GalleryFiles, _ executor: BlockingExecutor) { (self.files, self.executor) = (files, executor) }

    private func keep(_ details: Details, for stamp: GalleryFiles.Stamp) {
        known.withLock { known in
            if known.count >= Self.maximumCount, known[stamp] == nil {
                for old in known.keys.prefix(Self.maximumCount / 8) { known[old] = nil }
            }
            known[stamp] = details
        }
    }

    /// Forgets the failures, which other limits may avoid.
    func forgetFailures() { known.withLock { known in known = known.filter { $0.value.failure == nil } } }

    /// Returns the details of files.
    ///
    /// - Parameters:
    ///   - entries: Those that are new are opened, and the headers of images read.
    ///   - folder: The folder of the entries.
    ///   - renderer: Computes the placeholders that are not known, and finds out which files cannot be shown, behind
    ///     all other work; nil for neither.
    /// - Returns: Nil for a file of which nothing is known yet.
    func details(
        of entries: ArraySlice<GalleryListing.Entry>, in folder: [String], placeholdersBy renderer: Renderer? = nil
    ) async -> [Details?] {
        var passing = await readHeads(of: entries, in: folder)
        if let renderer {
            let missing = known.withLock { known in
                entries.filter { passing[$0.stamp] == nil && known[$0.stamp]?.isComplete != true }
            }
            for (stamp, details) in await addPlaceholders(to: missing, in: folder, by: renderer) {
                passing[stamp] = details
            }
        }
        return known.withLock { known in entries.map { passing[$0.stamp] ?? known[$0.stamp] } }
    }

    // MARK: Headers

    /// Reads the beginnings of files that are new. Returns the details of those whose failure may pass.
    private func readHeads(of entries: ArraySlice<GalleryListing.Entry>, in folder: [String]) async -> Found {
        let missing = known.withLock { known in entries.filter { known[$0.stamp] == nil } }
        guard !missing.isEmpty else { return [:] }
        let files = files
        return await withTaskGroup(of: Found.self) { group in
            // As many as there are threads, so that others have their turn.
            let size = max(8, (missing.count + 3) / 4)
            for start in stride(from: 0, to: missing.count, by: size) {
                let part = missing[start..<min(start + size, missing.count)]
                group.addTask { [self] in
                    guard !Task.isCancelled else { return [:] }
                    return await executor.run {
                        var passing: Found = [:]
                        for entry in part {
                            do throws(RequestError) {
                                guard let details = try Self.head(of: entry, folder, files) else { continue }
                                self.keep(details, for: entry.stamp)
                            } catch {
                                passing[entry.stamp] = .failed(error)
                            }
                        }
                        return passing
                    }
                }
            }
            return await group.reduce(into: [:]) { all, part in all.merge(part) { $1 } }
        }
    }

    /// Returns the details by the beginning of a file; nil if it cannot be read at the moment.
    ///
    /// - Throws: The error of a file that cannot be opened, whose name or rights may change.
    private static func head(
        of entry: GalleryListing.Entry, _ folder: [String], _ files: GalleryFiles
    ) throws(RequestError) -> Details? {
        let names = try GalleryFiles.names(of: entry.name)
        let file = GalleryOpenFile(try files.openFile(folder + names))
        let content: SourceContent?
        do throws(ImagePipelineError) {
            content = try file.content()
        } catch {
            // An error of the system says nothing about the file.
            return nil
        }
        guard let content else { return .failed(.notAnImage) }
        // Other kinds are opened by helper programs, or have their image in their middle.
        return content.kind == .image ? header(of: file) : Details()
    }

    private static func header(of file: GalleryOpenFile) -> Details {
        var details = Details()
        for count in [headBytes, longHeadBytes] {
            let bytes = GalleryFiles.beginning(of: file.descriptor, count: min(count, Int(file.stamp.bytes)))
            do throws(RequestError) {
                let header = try SourceHeader(of: bytes)
                details.width = Int32(clamping: header.size.width)
                details.height = Int32(clamping: header.size.height)
                details.pages = Int32(clamping: header.pageCount)
                details.duration = Float(header.duration ?? 0)
                return details
            } catch {
                guard bytes.count < count else { continue }
                // All of the file was read.
                if error.isDamage { details.failure = error.code }
                return details
            }
        }
        return details
    }

    // MARK: Placeholders

    /// Computes placeholders, a few at a time. Returns the details of files whose failure may pass.
    private func addPlaceholders(
        to entries: [GalleryListing.Entry], in folder: [String], by renderer: Renderer
    ) async -> Found {
        await withTaskGroup(of: Found.self) { group in
            var passing: Found = [:]
            for (index, entry) in entries.enumerated() {
                if index >= 2, let ended = await group.next() { passing.merge(ended) { $1 } }
                guard !Task.isCancelled else { break }
                group.addTask { await self.addPlaceholder(to: entry, in: folder, by: renderer) }
            }
            return await group.reduce(into: passing) { all, part in all.merge(part) { $1 } }
        }
    }

    private func addPlaceholder(
        to entry: GalleryListing.Entry, in folder: [String], by renderer: Renderer
    ) async -> Found {
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
            details.failure = error.code
            // The file stays as it is; rights, names and programs do not.
            if ["not-readable", "source-not-found", "helper-missing"].contains(error.code) {
                return [entry.stamp: details]
            }
            // Of those that are busy or cancelled, the next request asks again.
            guard error.isDamage || error.code == "source-too-large" else { return [:] }
        }
        keep(details, for: entry.stamp)
        return [:]
    }

    /// The address of a file below the root.
    static func source(_ names: [String]) -> String { "local:///" + HTMLText.path(names) }
}

extension GalleryDetails.Details {
    /// Whether the placeholder is there, or will never be.
    fileprivate var isComplete: Bool { hash != nil || failure != nil }
}
