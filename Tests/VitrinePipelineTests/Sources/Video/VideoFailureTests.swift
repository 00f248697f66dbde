import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Requests that cannot be met, and files that are broken or made to break their reader.
@Suite struct VideoFailureTests {
    private static func failure(
        _ input: ImageInput, at moment: VideoMoment = .poster, workers: WorkerPool = VideoFixture.workers()
    ) -> String {
        var request = RenderRequest(size: PixelSize(64))
        request.limits.deadline = 10
        return thrown { _ = try VideoFrameSource(input, at: moment, workers: workers).image(request) }
    }

    private static let answers = [
        "nothing", "damaged", "unsupported", "noVideo", "beyondEnd", "limitExceeded", "timedOut", "underlying",
    ]

    @Test func tellsWhatIsMissing() throws {
        let workers = VideoFixture.workers()
        func failure(_ name: String, _ moment: VideoMoment = .poster) throws -> String {
            Self.failure(.file(try VideoFixture.path(name)), at: moment, workers: workers)
        }
        #expect(try failure("sound.m4a") == "noVideo")
        #expect(try failure("cover.mp3") == "noVideo")
        #expect(try failure("snow.avi") == "unsupported")
        #expect(try failure("make-videos") == "unsupported")
        #expect(try failure("absent.mp4") == "unreadable")
        #expect(Self.failure(.bytes([], name: "empty"), workers: workers) == "damaged")
        #expect(try failure("seconds.mp4", .second(-1)) == "underlying")
        #expect(try failure("seconds.mp4", .second(.nan)) == "underlying")
        #expect(try failure("seconds.mp4", .second(.infinity)) == "underlying")
    }

    @Test func tellsWhereTheFilmEnds() throws {
        let film = try VideoFixture.source("seconds.mp4", at: .second(7))
        do {
            _ = try film.image(VideoFixture.whole)
            Issue.record("a frame beyond the end")
        } catch ImagePipelineError.beyondEnd(let source, let second, let duration) {
            #expect(source.hasSuffix("seconds.mp4") && second == 7 && duration == 6)
        }
    }

    @Test func tellsThatTheEndOfAnMP4IsMissing() throws {
        let bytes = try VideoFixture.bytes("moov-last.mp4")
        let source = VideoFrameSource(
            .bytes(Array(bytes.prefix(bytes.count / 2)), name: "half"), at: .poster, workers: VideoFixture.workers())
        do {
            _ = try source.image(VideoFixture.whole)
            Issue.record("a frame of half a file")
        } catch ImagePipelineError.damaged(_, let reason) {
            #expect(reason == "the file ends early")
        }
    }

    @Test func tellsWhatIsNotInstalled() throws {
        let workers = WorkerPool(program: VideoWorkers.program, location: .executable("/nowhere/vitrine-video"))
        #expect(Self.failure(.file(try VideoFixture.path("seconds.mp4")), workers: workers) == "toolMissing")
    }

    @Test(arguments: ["seconds.mp4", "moov-last.mp4", "seconds.mkv", "seconds.avi", "seconds.ts"])
    func survivesTruncationAtEveryKilobyte(_ film: String) throws {
        let bytes = try VideoFixture.bytes(film)
        let workers = VideoFixture.workers()
        for count in stride(from: 0, to: bytes.count, by: 1_024) {
            let input = ImageInput.bytes(Array(bytes.prefix(count)), name: "\(film) of \(count) bytes")
            for moment in [VideoMoment.poster, .second(5)] {
                #expect(Self.answers.contains(Self.failure(input, at: moment, workers: workers)), "\(count)")
            }
        }
        #expect(Self.failure(.bytes(bytes, name: film), workers: workers) == "nothing")
    }

    @Test func survivesFlippedBytes() throws {
        let workers = VideoFixture.workers()
        var random = SystemRandomNumberGenerator()
        for film in ["seconds.mp4", "seconds.mkv", "seconds.webm", "seconds.avi", "hdr.mp4"] {
            let whole = try VideoFixture.bytes(film)
            for _ in 0..<20 {
                var bytes = whole
                let places = (0..<8).map { _ in Int.random(in: 0..<bytes.count, using: &random) }
                for place in places { bytes[place] = UInt8.random(in: 0...255, using: &random) }
                let answer = Self.failure(.bytes(bytes, name: film), workers: workers)
                #expect(Self.answers.contains(answer), "\(film), bytes \(places): \(answer)")
            }
        }
        #expect(Self.failure(.file(try VideoFixture.path("seconds.mp4")), workers: workers) == "nothing")
    }

    @Test(.enabled(if: Corpus.isAvailable, "needs the shared corpus"))
    func survivesTheHostileCorpus() throws {
        let workers = VideoFixture.workers()
        let files =
            Corpus.files(in: "hostile/mp4") + Corpus.files(in: "hostile/truncated").filter { $0.hasSuffix(".mp4") }
        #expect(!files.isEmpty)
        for file in files {
            for moment in [VideoMoment.poster, .second(0.5)] {
                let answer = Self.failure(.file(file), at: moment, workers: workers)
                #expect(Self.answers.contains(answer), "\(file): \(answer)")
            }
        }
        #expect(Self.failure(.file(try VideoFixture.path("seconds.mp4")), workers: workers) == "nothing")
    }

    @Test func isCancelledWhileAFrameIsTaken() throws {
        let workers = VideoFixture.workers()
        var film = try VideoFixture.source("seconds.mp4", at: .second(5.5), workers: workers)
        film.precision = .exact
        let request = RenderRequest(size: PixelSize(4_096))
        _ = try film.image(request)
        // A film that is done before the cancellation comes is taken again.
        var answer = "nothing"
        for _ in 0..<100 where answer == "nothing" {
            let token = CancellationToken()
            var cancelled = request
            cancelled.cancellation = token
            Thread {
                while workers.busyCount == 0, !token.isCancelled { usleep(100) }
                token.cancel()
            }.start()
            answer = thrown { _ = try film.image(cancelled) }
            token.cancel()
        }
        #expect(answer == "cancelled")
        #expect(Self.failure(.file(try VideoFixture.path("seconds.mp4")), workers: workers) == "nothing")
    }
}
