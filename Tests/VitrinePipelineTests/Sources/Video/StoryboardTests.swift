import Testing
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Films of ``VideoFixture``: six seconds of six colours, with a key frame every two seconds.
@Suite struct StoryboardTests {
    static func board(
        _ film: String, interval: Double? = nil, width: Int = 64, columns: Int = 10, limits: ImageLimits = .standard,
        cancellation: CancellationToken = CancellationToken()
    ) throws -> Storyboard {
        try Storyboard(
            VideoFixture.source(film, at: .poster), interval: interval, cellWidth: width, columns: columns,
            limits: limits, cancellation: cancellation)
    }

    static func colors(_ board: Storyboard) throws -> [String] {
        try board.cells.map { cell in
            let place = cell.place
            return try board.sheet.processed(by: [
                .crop(x: place.x, y: place.y, width: place.size.width, height: place.size.height)
            ]).colorName()
        }
    }

    @Test(arguments: ["seconds.mp4", "moov-last.mp4", "seconds.mkv", "seconds.webm", "ten-bit.mp4"])
    func showsKeyFramesInTheirOrder(film: String) throws {
        let board = try Self.board(film, interval: 2, columns: 2)
        #expect(try Self.colors(board) == ["red", "blue", "cyan"])
        #expect(board.cells.map { $0.seconds.lowerBound } == [0, 2, 4])
        #expect(board.sheet.size == PixelSize(width: 128, height: 72))
        #expect(board.cells[2].place == PixelRect(x: 0, y: 36, width: 64, height: 36))
    }

    @Test func oneCellStandsForIntervalsWithoutAKeyFrame() throws {
        let board = try Self.board("seconds.mp4", interval: 1)
        #expect(try Self.colors(board) == ["red", "blue", "cyan"])
        #expect(board.cells.map { $0.seconds.lowerBound } == [0, 1, 3])
        #expect(abs((board.cells.last?.seconds.upperBound ?? 0) - 6) < 0.2)
        for (one, next) in zip(board.cells, board.cells.dropFirst()) {
            #expect(one.seconds.upperBound == next.seconds.lowerBound)
        }
    }

    @Test func defaultIntervalIsASecondForShortFilms() throws {
        #expect(try Self.board("seconds.mp4").cells == Self.board("seconds.mp4", interval: 1).cells)
    }

    @Test func uprightFilmsHaveUprightCells() throws {
        let board = try Self.board("rotated.mp4", interval: 2, width: 45)
        #expect(board.cells[0].place.size == PixelSize(width: 45, height: 80))
        #expect(board.sheet.size == PixelSize(width: 135, height: 80))
    }

    @Test func textNamesTimesAndPlaces() throws {
        let board = try Self.board("seconds.mp4", interval: 2, columns: 2)
        let lines = board.webVTT(sheet: "a film#1 ä.jpg").split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "WEBVTT" && lines[1].isEmpty)
        #expect(lines[2] == "00:00:00.000 --> 00:00:02.000")
        #expect(lines[3] == "a%20film%231%20%C3%A4.jpg#xywh=0,0,64,36")
        #expect(lines[5] == "00:00:02.000 --> 00:00:04.000")
        #expect(lines[9].hasSuffix("#xywh=0,36,64,36"))
        #expect(!board.webVTT(sheet: "x\n\n00:00:00.000 --> 1\ny").contains("\ny"))
        #expect(board.webVTT(sheet: "x\n--> y").split(separator: "\n").count == 1 + 2 * board.cells.count)
        #expect(board.webVTT(sheet: "https://example.org/a?b=c%20d").contains("\nhttps://example.org/a?b=c%20d#xywh="))
    }

    @Test func refusesImpossibleRequests() throws {
        for (interval, width, columns) in [(0, 64, 1), (-1, 64, 1), (.nan, 64, 1), (0.001, 64, 1), (1, 8, 1), (1, 64, 0)]
            as [(Double, Int, Int)]
        {
            #expect(throws: ImagePipelineError.self) {
                try Self.board("seconds.mp4", interval: interval, width: width, columns: columns)
            }
        }
        var limits = ImageLimits()
        limits.maximumOutputSide = 100
        #expect(throws: ImagePipelineError.self) { try Self.board("seconds.mp4", interval: 2, limits: limits) }
        #expect(throws: Never.self) { try Self.board("seconds.mp4", interval: 4, width: 40, limits: limits) }
    }

    @Test func soundAndOtherContentHaveNoStoryboard() throws {
        #expect(throws: ImagePipelineError.self) { try Self.board("sound.m4a") }
        #expect(throws: ImagePipelineError.self) { try Self.board("snow.avi") }
        #expect(throws: ImagePipelineError.self) { try Self.board("make-videos") }
        #expect(throws: ImagePipelineError.self) { try Storyboard(of: .file("/nowhere.mp4")) }
    }

    @Test func endsWhenItIsCancelled() throws {
        let token = CancellationToken()
        token.cancel()
        #expect(throws: ImagePipelineError.self) { try Self.board("seconds.mp4", cancellation: token) }
    }
}
