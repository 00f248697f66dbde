import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// Page numbers, counted from 1: `3`, `1-9`, `2,5-7`, `4-`.
struct PagesArgument: ExpressibleByArgument {
    private let ranges: [ClosedRange<Int>]

    init?(argument: String) {
        var ranges: [ClosedRange<Int>] = []
        for part in argument.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = Int(ends[0]), first >= 1 else { return nil }
            var last = first
            if ends.count == 2 {
                guard let end = ends[1].isEmpty ? Int.max : Int(ends[1]), end >= first else { return nil }
                last = end
            }
            ranges.append(first...last)
        }
        self.ranges = ranges
    }

    /// The requested pages of a document of `count` pages, in the requested order, without duplicates.
    func pages(of count: Int) -> [Int] {
        var seen: Set<Int> = []
        return ranges.flatMap { range in
            range.lowerBound > count ? [] : Array(range.lowerBound...min(range.upperBound, count))
        }.filter { seen.insert($0).inserted }
    }

    /// The first requested page, for the message that it does not exist.
    var first: Int { ranges[0].lowerBound }
}

/// A moment of a video: seconds from its start, or `poster`.
struct TimeArgument: ExpressibleByArgument {
    let moment: VideoMoment

    init?(argument: String) {
        if argument == "poster" {
            moment = .poster
        } else if let second = Double(argument), second.isFinite, second >= 0 {
            moment = .second(second)
        } else {
            return nil
        }
    }
}

/// The subject of a recording's image.
enum CoverArgument: String, ExpressibleByArgument, CaseIterable {
    case front, back, leaflet, medium, artist, band, other

    var kind: RecordingCover.Kind {
        switch self {
        case .front: .front
        case .back: .back
        case .leaflet: .leaflet
        case .medium: .medium
        case .artist: .artist
        case .band: .band
        case .other: .other
        }
    }
}

/// The options for web addresses.
struct WebPageOptions: ParsableArguments {
    @Flag(help: "Draw web addresses as web pages, by a browser. Otherwise they are images, PDFs or videos.")
    var webPage = false

    @Flag(help: "Load from public addresses only, not from private networks.")
    var publicOnly = false

    @Flag(
        help: """
            Run the browser without its sandbox, as root and in containers. A page can then break out of it.
            """)
    var noBrowserSandbox = false

    func validate() throws {
        guard webPage || !noBrowserSandbox else {
            throw ValidationError("--no-browser-sandbox needs --web-page")
        }
    }

    var policy: URLAccessPolicy { publicOnly ? .publicOnly : .userInitiated }
}

/// The options for the page or moment of an input.
struct PartOptions: ParsableArguments {
    @Option(help: "Page of a document or frame of an animation, counted from 1. (default: 1)")
    var page: Int?

    @Option(
        help: """
            Several pages: 1-9 or 2,5-7 or 4-. Numbers after the last page are ignored. (default: the one of --page)
            """)
    var pages: PagesArgument?

    @Option(help: "Moment of a video: seconds from its start, or poster for a typical frame. (default: poster)")
    var time: TimeArgument?

    @Flag(help: "Decode exactly the frame at --time. This is slower than the nearest key frame.")
    var exact = false

    @Option(help: ArgumentHelp("The cover of a recording that has several.", valueName: "kind"))
    var cover = CoverArgument.front

    @Flag(
        help: """
            For a recording without a cover, use cover.jpg, folder.jpg, front.jpg or a similar file beside it.
            """)
    var siblingCovers = false

    @Flag(help: "For a recording without a cover, draw its loudness over time. Takes vitrine-video.")
    var waveform = false

    @Option(help: "Password of encrypted PDFs. Other users can see it in process lists. (default: none)")
    var password: String?

    func validate() throws {
        if let page {
            guard page >= 1 else { throw ValidationError("--page is a number from 1") }
            guard pages == nil else { throw ValidationError("use either --page or --pages") }
        }
    }

    /// Returns the source options for one page of `pages`, or for `--page`.
    func options(page: Int?) -> SourceDetector.Options {
        var options = SourceDetector.Options(
            page: page ?? self.page ?? pages?.first ?? 1, moment: time?.moment ?? .poster)
        options.precision = exact ? .exact : .nearestKeyFrame
        options.password = password
        options.readsText = true
        options.cover = cover.kind
        options.allowsSiblingCover = siblingCovers
        options.drawsWaveform = waveform
        return options
    }
}

/// The options for decoding in helper processes and for the limits of it, for all commands that decode.
struct DecoderOptions: ParsableArguments {
    @Flag(help: "Decode all formats in sandboxed helper processes, not only the less trusted ones.")
    var isolate = false

    @Flag(help: "Develop raw files without a preview by LibRaw, in a helper process. Takes seconds for each.")
    var developRaw = false

    @Option(help: ArgumentHelp(
        "The most pixels of an image. (default: 210 million; 64 million where a decoder needs the whole image)",
        valueName: "count"))
    var maxPixels: Int?

    @Option(help: ArgumentHelp(
        "The most bytes of an image's file: 300MB, 2GiB. (default: 100 MiB)", valueName: "size"))
    var maxBytes: ByteCountArgument?

    /// Sets the defaults of the whole process, so that no decoder needs the options.
    func validate() throws {
        if isolate { Isolation.standard = .always }
        if developRaw { ImageDecoder.developsRawFiles = true }
        var limits = ImageLimits.standard
        if let maxPixels {
            guard maxPixels > 0 else { throw ValidationError("--max-pixels takes a number above 0.") }
            limits.allow(pixels: maxPixels)
        }
        if let maxBytes {
            guard maxBytes.size.bytes > 0 else { throw ValidationError("--max-bytes takes a size above 0.") }
            limits.maximumInputBytes = maxBytes.size.bytes
        }
        CommandLimits.current = limits
    }
}

/// The limits of all images that the command reads.
enum CommandLimits {
    private static let chosen = Locked(ImageLimits.standard)

    /// The standard limits, with those that the options change.
    static var current: ImageLimits {
        get { chosen.withLock { $0 } }
        set { chosen.withLock { $0 = newValue } }
    }
}
