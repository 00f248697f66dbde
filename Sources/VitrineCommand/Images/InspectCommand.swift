import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrinePipeline

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// `vitrine inspect`: format, size and other properties of inputs.
struct InspectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Prints format, size and other properties of images, PDFs and videos.",
        discussion: """
            It reads headers only, and decodes no pixels. Keys of --json without a value are null.

              vitrine inspect photo.heic manual.pdf video.mp4
            """)

    @Argument(help: "Images, PDFs or videos; - is standard input.", completion: .file())
    var inputs: [String]

    @Option(help: "Password of encrypted PDFs. Other users can see it in process lists. (default: none)")
    var password: String?

    @OptionGroup var decoder: DecoderOptions

    @Flag(name: [.short, .long], help: "Show no progress bar.")
    var quiet = false

    @Flag(help: "Print one JSON object per input instead of text.")
    var json = false

    func run() async throws {
        var failures = 0
        let bar = ProgressBar(total: inputs.count, isQuiet: quiet)
        await Batch.run(inputs, progress: bar, name: { $0 }) { [password] _, word in
            await BlockingExecutor.shared.run { InspectReport(word, password: password) }
        } report: { report in
            if report.error != nil { failures += 1 }
            report.print(asJSON: json)
        }
        if failures > 0 { throw ExitCode(1) }
    }
}

/// The properties of one input, as a line of text or JSON.
private struct InspectReport: Sendable, Encodable {
    let input: String
    var info: ImageInfo?
    var document: PDFDocumentInfo?
    var video: VideoInfo?
    /// The kind of a file that has nothing to tell but its kind.
    var drawn: String?
    /// The bytes of the file.
    var bytes: Int?
    var details: PhotoDetails?
    /// Parts of the input that its image does not show.
    var notes: [String] = []
    var error: String?

    /// Reads the header of an input. Blocks.
    init(_ word: String, password: String?) {
        input = word
        do {
            let input = try InputArgument.read(word)
            bytes = (try? ByteSource(input))?.count
            switch try FileKind(of: input, readsText: true) {
            case .pdf?:
                document = try PDFDocument(input, password: password).info(pages: 1...1, limits: CommandLimits.current)
            case .media?:
                video = try VideoFrameSource(input, at: .poster).info(limits: CommandLimits.current)
            case .font?: drawn = "font"
            case .text?: drawn = "text"
            case .image?, nil:
                info = try ImageInfo(of: input, limits: CommandLimits.current)
                details = ((try? ImageMetadata(of: input)) ?? ImageMetadata()).exif.map(PhotoDetails.init)
                if let format = info?.format, let drawing = Codecs.standard[format]?.drawing {
                    notes = Self.notes(of: input, drawing)
                }
            }
        } catch {
            self.error = Diagnostics.describe(error).reason
        }
    }

    /// The parts that are left out when a drawing is drawn, or the reason why it is not drawn.
    private static func notes(of input: ImageInput, _ drawing: any CheckedDrawing.Type) -> [String] {
        do throws(ImageError) {
            let leftOut = try drawing.init(ByteSource(input), CommandLimits.current).leftOut
            return leftOut.isEmpty ? [] : ["drawn without " + leftOut.joined(separator: ", ")]
        } catch {
            return ["not drawn: \(error.reason)"]
        }
    }

    private enum CodingKeys: String, CodingKey {
        case input, format, width, height, orientation, alpha, colorModel, bitDepth, profile, frames, duration, loops
        case progressive, previews, notes, error, pages, title, videoCodec, audioCodec, frameRate, created
        case bytes, camera, lens, latitude, longitude
    }

    private struct Preview: Encodable {
        let width: Int?
        let height: Int?
        let bytes: Int
    }

    /// Every key is present. Values that do not apply are null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(input, forKey: .input)
        try container.encode(format, forKey: .format)
        try container.encode(size?.width, forKey: .width)
        try container.encode(size?.height, forKey: .height)
        try container.encode((info?.orientation ?? video?.orientation)?.rawValue, forKey: .orientation)
        try container.encode(info?.hasAlpha, forKey: .alpha)
        try container.encode(info?.colorModel.rawValue, forKey: .colorModel)
        try container.encode(info?.bitDepth, forKey: .bitDepth)
        try container.encode(
            info.flatMap { $0.colorProfile == nil ? nil : $0.colorProfileName ?? "unnamed" }, forKey: .profile)
        try container.encode(info?.frameCount, forKey: .frames)
        try container.encode(info?.duration ?? video?.duration, forKey: .duration)
        try container.encode(info?.loopCount, forKey: .loops)
        try container.encode(info?.isProgressive, forKey: .progressive)
        try container.encode(
            info?.embeddedPreviews.map {
                Preview(width: $0.size?.width, height: $0.size?.height, bytes: $0.count)
            }, forKey: .previews)
        try container.encode(notes, forKey: .notes)
        try container.encode(error, forKey: .error)
        try encodeDocument(to: &container)
    }

    private func encodeDocument(to container: inout KeyedEncodingContainer<CodingKeys>) throws {
        try container.encode(document?.pageCount, forKey: .pages)
        try container.encode(document?.title, forKey: .title)
        try container.encode(video?.videoCodec, forKey: .videoCodec)
        try container.encode(video?.audioCodec, forKey: .audioCodec)
        try container.encode(video?.frameRate, forKey: .frameRate)
        try container.encode(
            details?.date ?? video?.creationDate.map { $0.formatted(.iso8601) }, forKey: .created)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(details?.camera, forKey: .camera)
        try container.encode(details?.lens, forKey: .lens)
        try container.encode(details?.place?.latitude, forKey: .latitude)
        try container.encode(details?.place?.longitude, forKey: .longitude)
    }

    private var format: String? {
        info?.format.rawValue ?? drawn ?? (document == nil ? video?.container : "pdf")
    }

    /// The pixels of an image or video, or the points of a document's first page; nil for sound.
    private var size: PixelSize? {
        if let document {
            guard let page = document.size(ofPage: 1), page.width < 1e9, page.height < 1e9 else { return nil }
            return PixelSize(width: Int(page.width.rounded()), height: Int(page.height.rounded()))
        }
        if let video { return video.hasVideo ? video.size : nil }
        return info?.size
    }

    func print(asJSON: Bool) {
        if asJSON {
            Output.json(self)
        } else if let summary = info.map(summary) ?? document.map(summary) ?? video.map(summary) ?? drawn {
            let size = bytes.map { [ByteCount($0).formatted()] } ?? []
            Output.row("\(input)  \(([summary] + size + (details?.parts ?? []) + notes).joined(separator: ", "))")
        } else {
            Diagnostics.write("\(input): \(error ?? "unknown")")
        }
    }

    private func summary(of document: PDFDocumentInfo) -> String {
        var parts = ["pdf", document.pageCount == 1 ? "1 page" : "\(document.pageCount) pages"]
        if let size { parts.append("\(size) points") }
        if let title = document.title { parts.append("“\(title)”") }
        return parts.joined(separator: ", ")
    }

    /// Returns the usual name of a container that FFmpeg calls by all that its reader reads.
    private static func name(ofContainer container: String) -> String {
        switch container {
        case "mov,mp4,m4a,3gp,3g2,mj2": "MPEG-4"
        case "matroska,webm": "Matroska"
        case "mpegts": "MPEG-TS"
        case "mpeg": "MPEG-PS"
        case "avi", "flv", "asf", "ogg", "wav", "aiff", "flac", "mp3": container.uppercased()
        default: container
        }
    }

    private func summary(of video: VideoInfo) -> String {
        var parts = [Self.name(ofContainer: video.container)]
        if let size { parts.append("\(size)") }
        if let date = video.creationDate { parts.append(date.formatted(.iso8601)) }
        if let duration = video.duration { parts.append(duration.formatted("%.2f s")) }
        if let rate = video.frameRate { parts.append(rate.formatted("%.4g frames a second")) }
        if video.hasVideo, video.orientation != .up { parts.append("orientation \(video.orientation.rawValue)") }
        parts += [video.videoCodec, video.audioCodec].compactMap(\.self)
        if video.hasCoverArt { parts.append("cover") }
        return parts.joined(separator: ", ")
    }

    private func summary(of info: ImageInfo) -> String {
        var parts = ["\(info.format.rawValue)", "\(info.size)", "\(info.colorModel.rawValue) \(info.bitDepth)-bit"]
        if info.hasAlpha { parts.append("alpha") }
        if info.orientation != .up { parts.append("orientation \(info.orientation.rawValue)") }
        if info.colorProfile != nil { parts.append("profile \(info.colorProfileName ?? "unnamed")") }
        if info.isProgressive { parts.append("progressive") }
        if let duration = info.duration {
            parts.append("\(info.frameCount) frames in " + duration.formatted("%.2f s"))
        } else if info.frameCount > 1 {
            parts.append("\(info.frameCount) pages")
        }
        parts += info.embeddedPreviews.map { "preview \($0.size?.description ?? "of unknown size")" }
        return parts.joined(separator: ", ")
    }
}
