import Testing
import VitrineImaging

@Suite struct WorkerWireTests {
    @Test func requestsSurviveTheJourney() throws {
        var info = ImageInfo(format: .heic, storedSize: PixelSize(width: 4_032, height: 3_024))
        info.orientation = .right
        info.frameCount = 3
        info.duration = 1.5
        info.loopCount = 0
        var limits = ImageLimits()
        limits.maximumFrames = 77
        limits.deadline = 2.25
        (limits.maximumPixels, limits.maximumResultPixels) = (5, 6)
        var request = WorkerRequest(id: 9, operation: .decode, info: info, limits: limits)
        request.target = PixelSize(width: 200, height: 150)
        request.options.page = 2
        request.decoder = "VipsDecoder"
        request.options.allowsEmbeddedPreview = true
        let back = try #require(WorkerRequest(request.encoded()))
        #expect(back.info == info)
        #expect(back.limits == limits)
        #expect(back.target == request.target && back.id == 9 && back.decoder == "VipsDecoder")
        #expect(back.options == request.options)
    }

    @Test func regionsSurviveTheJourney() throws {
        let info = ImageInfo(format: .jpeg, storedSize: PixelSize(width: 4_032, height: 3_024))
        for region in [nil, PixelRect(x: 10, y: 20, width: 300, height: 400)] {
            var request = DecodeRequest(info: info, target: nil)
            request.region = region
            #expect(try #require(WorkerRequest(WorkerRequest(id: 1, request).encoded())).region == region)
            let plane = PixelPlane(width: 10, height: 10, channels: 3, storage: PixelStorage(zeroedByteCount: 300))
            var shape = WorkerReply.DecodedShape(
                planes: [WorkerReply.Plane(plane, bytesPerRow: plane.bytesPerRow, offset: 0)], model: .rgb,
                alpha: .none, profile: .none, isPartial: false)
            shape.region = region
            let reply = try #require(WorkerReply(WorkerReply(id: 1, outcome: .decoded(shape), memory: 0).encoded()))
            guard case .decoded(let back) = reply.outcome else {
                Issue.record("the reply is of another kind")
                continue
            }
            #expect(back.region == region)
        }
    }

    @Test func theHeightThatIsFilledSurvivesTheJourney() throws {
        let plane = PixelPlane(width: 10, height: 10, channels: 3, storage: PixelStorage(zeroedByteCount: 300))
        var shape = WorkerReply.DecodedShape(
            planes: [WorkerReply.Plane(plane, bytesPerRow: plane.bytesPerRow, offset: 0)], model: .rgb,
            alpha: .none, profile: .none, isPartial: true)
        shape.filledHeight = 0.3
        let reply = try #require(WorkerReply(WorkerReply(id: 1, outcome: .decoded(shape), memory: 0).encoded()))
        guard case .decoded(let back) = reply.outcome else {
            Issue.record("the reply is of another kind")
            return
        }
        #expect(back.filledHeight == 0.3)
        for wrong in [-0.1, 1.1, .nan, .infinity] {
            shape.filledHeight = wrong
            #expect(WorkerReply(WorkerReply(id: 1, outcome: .decoded(shape), memory: 0).encoded()) == nil)
        }
    }

    @Test func rectanglesOfNegativeNumbersAreRefused() {
        var writer = WireWriter()
        writer.write(PixelRect(x: -1, y: 0, width: 5, height: 5))
        var reader = WireReader(writer.bytes)
        #expect(reader.rect() == nil && !reader.isValid)
    }

    @Test func decodeRequestsKeepWhetherTheWorkerScales() throws {
        let info = ImageInfo(format: .jpeg, storedSize: PixelSize(width: 4_032, height: 3_024))
        for scales in [false, true] {
            var request = DecodeRequest(info: info, target: PixelSize(width: 800, height: 600))
            request.allowsScaling = scales
            let back = try #require(WorkerRequest(WorkerRequest(id: 1, request).encoded()))
            #expect(back.scales == scales && back.target == request.target)
        }
    }

    @Test(arguments: [(false, false), (false, true), (true, false), (true, true)])
    func repliesKeepWhatTheSamplesAre(isPartial: Bool, samplesAreMeans: Bool) throws {
        let plane = PixelPlane(width: 10, height: 10, channels: 3, storage: PixelStorage(zeroedByteCount: 300))
        let shape = WorkerReply.DecodedShape(
            planes: [WorkerReply.Plane(plane, bytesPerRow: plane.bytesPerRow, offset: 0)], model: .rgb, alpha: .none,
            profile: .none, isPartial: isPartial, samplesAreMeans: samplesAreMeans)
        let reply = try #require(WorkerReply(WorkerReply(id: 1, outcome: .decoded(shape), memory: 0).encoded()))
        guard case .decoded(let back) = reply.outcome else {
            Issue.record("not a picture")
            return
        }
        #expect(back.isPartial == isPartial && back.samplesAreMeans == samplesAreMeans)
        let image = DecodedImage(back, memory: try SharedMemory(), requestedProfile: nil, limits: .standard)
        #expect(image?.samplesAreMeans == samplesAreMeans)
    }

    @Test(arguments: PixelImage.Alpha.allCases)
    func requestsKeepTheMeaningOfAlpha(alpha: PixelImage.Alpha) throws {
        var request = WorkerRequest(
            id: 1, operation: .encode, info: ImageInfo(format: .png, storedSize: .zero), limits: .standard)
        request.alpha = alpha
        request.bytesPerRow = 0x1234_5678
        var packet = request.encoded()
        #expect(try #require(WorkerRequest(packet)).alpha == alpha)
        // The byte after the length of a row; no fourth case exists.
        let row = try #require(packet.indices.first { packet[$0...].starts(with: [0x78, 0x56, 0x34, 0x12]) })
        packet[row + 8] = 3
        #expect(WorkerRequest(packet) == nil)
    }

    @Test(arguments: ImageLimits.Kind.allCases)
    func failuresKeepTheLimit(limit: ImageLimits.Kind) throws {
        let error = ImageError.limitExceeded(input: "a", limit: limit, actual: 7, allowed: 5)
        let packet = WorkerReply(id: 1, outcome: .failed(WorkerFailure(error)), memory: 5).encoded()
        guard case .failed(let back) = try #require(WorkerReply(packet)).outcome else {
            Issue.record("no failure")
            return
        }
        #expect(back.error(input: "a", format: nil) == error)
    }

    @Test func brokenPacketsAreRefusedAtEveryLength() {
        var failure = WorkerFailure(kind: .limitExceeded, reason: "größer")
        failure.limit = .pixels
        let packet = WorkerReply(id: 1, outcome: .failed(failure), memory: 5).encoded()
        for length in 0..<packet.count { #expect(WorkerReply(Array(packet.prefix(length))) == nil) }
        #expect(WorkerReply(packet + [0]) == nil)
        let request = WorkerRequest(
            id: 1, operation: .ping, info: ImageInfo(format: .png, storedSize: .zero), limits: .standard).encoded()
        for length in 0..<request.count { #expect(WorkerRequest(Array(request.prefix(length))) == nil) }
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var bytes = packet
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            _ = WorkerReply(bytes)
        }
    }

    @Test func planesOutsideTheSharedMemoryAreRefused() throws {
        let memory = try SharedMemory()
        let plane = PixelPlane(width: 10, height: 10, channels: 3, storage: PixelStorage(zeroedByteCount: 300))
        func image(_ change: (inout WorkerReply.DecodedShape) -> Void) -> DecodedImage? {
            var shape = WorkerReply.DecodedShape(
                planes: [WorkerReply.Plane(plane, bytesPerRow: plane.bytesPerRow, offset: 0)], model: .rgb, alpha: .none,
                profile: .none, isPartial: false)
            change(&shape)
            return DecodedImage(shape, memory: memory, requestedProfile: nil, limits: .standard)
        }
        #expect(image { _ in } != nil)
        let end = memory.payload.count
        #expect(image { $0.planes[0].offset = end - 300 } != nil)
        for offset in [end - 299, -1, .max, .min] { #expect(image { $0.planes[0].offset = offset } == nil) }
        for height in [0, -1, 1 << 30, .max] { #expect(image { $0.planes[0].height = height } == nil) }
        for width in [0, 11, .max] { #expect(image { $0.planes[0].width = width } == nil) }
        for stride in [29, 0, -1, (1 << 27) + 1, .max, .min] {
            #expect(image { $0.planes[0].bytesPerRow = stride } == nil)
        }
        // The rows may have gaps, which are within the payload like everything else.
        #expect(image { $0.planes[0].bytesPerRow = 32 } != nil)
        #expect(
            image {
                $0.planes[0].bytesPerRow = 32
                $0.planes[0].offset = end - 319
            } == nil)
        for extent in [0, -1, 10.5, .nan, .infinity] { #expect(image { $0.planes[0].extentWidth = extent } == nil) }
        #expect(image { $0.model = .gray } == nil)
        #expect(image { $0.alpha = .straight } == nil)
        #expect(image { $0.profile = .payload(offset: end, count: 1) } == nil)
        #expect(image { $0.profile = .payload(offset: 0, count: -1) } == nil)
        #expect(image { $0.profile = .payload(offset: 0, count: 5 << 20) } == nil)
    }

    /// A worker that was taken over may name planes of any size: copying them would take the memory of this process.
    @Test func planesThatAreNoPictureAreRefusedBeforeTheyAreCopied() throws {
        let memory = try SharedMemory()
        func image(
            _ width: Int, _ height: Int, bytesPerRow: Int, limits: ImageLimits = .standard
        ) -> DecodedImage? {
            let sample = PixelPlane(width: 1, height: 1, channels: 1, storage: PixelStorage(zeroedByteCount: 1))
            var plane = WorkerReply.Plane(sample, bytesPerRow: bytesPerRow, offset: 0)
            (plane.width, plane.height) = (width, height)
            (plane.extentWidth, plane.extentHeight) = (Double(width), Double(height))
            let shape = WorkerReply.DecodedShape(
                planes: [plane], model: .gray, alpha: .none, profile: .none, isPartial: false)
            return DecodedImage(shape, memory: memory, requestedProfile: nil, limits: limits)
        }
        #expect(image(10, 10, bytesPerRow: 64) != nil)
        // Rows that are nothing but padding.
        #expect(image(1, 1 << 16, bytesPerRow: 1 << 13) == nil)
        #expect(image(1, 1 << 24, bytesPerRow: 128) == nil)
        // More pixels than any limit allows.
        #expect(image(1 << 14, 1 << 14, bytesPerRow: 1 << 14) == nil)
        var limits = ImageLimits()
        (limits.maximumPixels, limits.maximumWholeImagePixels, limits.maximumOutputSide) = (100, 99, 9)
        #expect(image(10, 10, bytesPerRow: 10, limits: limits) != nil)
        #expect(image(101, 1, bytesPerRow: 101, limits: limits) == nil)
        for number in [Int.max, .min, -1] {
            #expect(image(number, number, bytesPerRow: number) == nil)
            #expect(image(2, number, bytesPerRow: 2) == nil)
        }
    }

    @Test func longTextsAreCutBetweenCharacters() {
        var wire = WireWriter()
        wire.write("ab€", limit: 4)
        var reader = WireReader(wire.bytes)
        #expect(reader.text() == "ab")
        #expect(reader.isComplete)
    }
}
