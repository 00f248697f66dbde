import VitrineCache
import VitrineCore
import VitrineImaging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
@_spi(HTTPCacheEngine) import VitrineNetwork

/// The work of `vitrine fetch` on one address.
struct FetchJob: Sendable {
    let loader: NetworkLoader
    /// nil for `--no-cache`.
    let cache: FetchCache?
    let options: RequestOptions
    /// The key in the cache; nil for the address.
    let identity: String?
    /// The box that images are scaled down to; nil to leave the bytes as received.
    let size: PixelSize?
    let display: TransferDisplay

    func run(_ number: Int, _ item: FetchItem) async -> FetchReport {
        let start = ContinuousClock.now
        var report = FetchReport(url: item.name)
        do {
            try await fetch(number, item: item, report: &report)
        } catch {
            report.error = Self.reason(error)
        }
        report.milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
        return report
    }

    private func fetch(_ number: Int, item: FetchItem, report: inout FetchReport) async throws {
        let request = options.request(for: item.url)
        defer { display.remove(number) }
        if let cache {
            let progress = TransferProgress()
            display.add(number, name: item.name, progress)
            do throws(CacheError) {
                return try await save(cache.body(request, id: identity, progress), of: item, &report)
            } catch {
                guard error.isTooLarge, size == nil, item.output != nil, request.maximumBodySize > FetchCache.limit
                else {
                    throw error
                }
            }
        }
        switch item.output {
        case .standardOutput?: try await stream(request, number: number, item: item, report: &report)
        case .file(let path)?: try await download(request, number: number, item: item, to: path, report: &report)
        case nil: break
        }
    }

    private func save(
        _ answer: FetchCache.Answer, of item: FetchItem, _ report: inout FetchReport
    ) async throws(CacheError) {
        report.source = answer.origin
        report.status = answer.head?.status
        report.type = answer.head?.headers["Content-Type"]
        report.bytes = answer.bytes.count
        guard let output = item.output else { return }
        var bytes = answer.bytes
        if let size {
            bytes = try await scaledImage(bytes, size: size, item: item, output: output)
            report.type = nil
            report.bytes = bytes.count
        }
        switch output {
        case .standardOutput:
            await BlockingExecutor.shared.run { [bytes] in Output.contents(bytes) }
            report.output = "-"
        case .file(let path):
            do throws(FileError) {
                try await AtomicFile.write(bytes, to: path, on: .shared)
            } catch {
                throw .file(error)
            }
            report.output = path
        }
    }

    /// Returns an image scaled down to a size, in the format of the output's extension.
    private func scaledImage(
        _ bytes: [UInt8], size: PixelSize, item: FetchItem, output: FetchItem.Target
    ) async throws(CacheError) -> [UInt8] {
        var format = FormatArgument.auto
        if case .file(let path) = output, let named = FormatArgument(path: path) { format = named }
        let wanted = format.outputFormat(quality: OutputFormat.defaultQuality)
        let resizer = ImageResizer(size: size, mode: .fit, allowsUpscaling: false)
        do {
            let image = try await ImageDecoder(limits: CommandLimits.current).image(
                from: .bytes(bytes, name: item.name), at: resizer)
            return try await BlockingExecutor.shared.run { () throws(ImageError) in try image.encoded(as: wanted) }
        } catch {
            throw .invalidData(key: CacheKey(item.name), underlying: error)
        }
    }

    private func download(
        _ request: HTTPRequest, number: Int, item: FetchItem, to output: String, report: inout FetchReport
    ) async throws(NetworkError) {
        let progress = TransferProgress()
        display.add(number, name: item.name, progress)
        var settings = DownloadOptions()
        settings.identity = identity
        let file = try await loader.download(request, to: output, options: settings, progress: progress)
        report.output = output
        report.source = .network
        report.status = file.head.status
        report.type = file.head.contentType
        report.bytes = file.length
        report.resumed = file.resumedLength
    }

    /// Writes a body to standard output as it arrives, past the cache.
    private func stream(
        _ request: HTTPRequest, number: Int, item: FetchItem, report: inout FetchReport
    ) async throws {
        let progress = TransferProgress()
        display.add(number, name: item.name, progress)
        let response = try await loader.load(request, progress: progress)
        report.output = "-"
        report.source = .network
        report.status = response.head.status
        report.type = response.head.contentType
        for try await chunk in response.body {
            await BlockingExecutor.shared.run { Output.contents(Array(chunk)) }
            report.bytes = (report.bytes ?? 0) + chunk.count
        }
    }

    /// Returns the reason without the address.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case CacheError.source(_, let underlying), CacheError.invalidData(_, let underlying): reason(underlying)
        case CacheError.notFound: "it is not in the cache; use --depth network to load it"
        case CacheError.cancelled: "cancelled"
        case CacheError.file(let error): error.failedWrite
        default: Diagnostics.describe(error).reason
        }
    }
}

extension CacheError {
    /// Whether a body was too large for the cache.
    fileprivate var isTooLarge: Bool {
        if case .source(_, NetworkError.bodyTooLarge) = self { true } else { false }
    }
}
