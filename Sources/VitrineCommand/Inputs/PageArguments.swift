import ArgumentParser
import VitrineImaging
import VitrineNetwork
import VitrinePipeline

/// Pages, from 1: `3`, `1-9`, `2,5-7`, `4-`.
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

    /// The pages there are among `count`, in the order they were named, each once.
    func pages(of count: Int) -> [Int] {
        var seen: Set<Int> = []
        return ranges.flatMap { range in
            range.lowerBound > count ? [] : Array(range.lowerBound...min(range.upperBound, count))
        }.filter { seen.insert($0).inserted }
    }

    /// The first page named, for telling that there is no such page.
    var first: Int { ranges[0].lowerBound }
}

/// A moment of a film: seconds from its beginning, or `poster`.
struct TimeArgument: ExpressibleByArgument {
    let moment: VideoFrameSource.Moment

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

/// How web pages are loaded.
struct WebPageOptions: ParsableArguments {
    @Flag(help: "Load web pages, and all that belongs to them, from public addresses only.")
    var publicOnly = false

    var policy: URLAccessPolicy { publicOnly ? .publicOnly : .userInitiated }
}

/// Which part of an input is shown.
struct PartOptions: ParsableArguments {
    @Option(help: "Page of a document or frame of an animation, from 1. Default: the first.")
    var page: Int?

    @Option(help: "Several pages, each by itself: 1-9 or 2,5-7 or 4-. Those beyond the last one are left out.")
    var pages: PagesArgument?

    @Option(help: "Moment of a film: seconds from its beginning, or poster. Default: poster.")
    var time: TimeArgument?

    @Flag(help: "Show the very frame of --time, not the nearest one that can be had quickly.")
    var exact = false

    @Option(help: "Password of encrypted documents, of which nothing is kept. Lists of processes show it.")
    var password: String?

    func validate() throws {
        if let page {
            guard page >= 1 else { throw ValidationError("--page counts from 1") }
            guard pages == nil else { throw ValidationError("--page and --pages exclude each other") }
        }
    }

    /// The part, for page `page` of `pages`.
    func options(page: Int?) -> SourceDetector.Options {
        var options = SourceDetector.Options(page: page ?? self.page ?? 1, moment: time?.moment ?? .poster)
        options.precision = exact ? .exact : .nearestKeyFrame
        options.password = password
        return options
    }
}

/// Where pictures are decoded, for every command that decodes.
struct IsolationOption: ParsableArguments {
    @Flag(help: "Decode pictures of every format in helper processes, none in this one.")
    var isolate = false

    /// Concerns the whole process, so that nothing has to be told to each decoder.
    func validate() throws {
        if isolate { Isolation.standard = .always }
    }
}
