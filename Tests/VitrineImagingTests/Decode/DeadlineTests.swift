import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging
import VitrineContainers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The codec of one test, whose header reader and decoder are closures.
private struct ScriptedDecoder: Sendable {
    let format: ImageFormat
    var header: @Sendable (ByteSource) throws -> Void = { _ in }
    var pixels: @Sendable (ByteSource, DecodeRequest) throws -> Void = { _, _ in }

    init(_ name: String) { format = ImageFormat(name) }

    var input: ImageInput { .bytes(Array("\(format)\n".utf8), name: format.rawValue) }

    var codec: Codec {
        Codec(format) { prefix in
            prefix.starts(with: Array("\(format)\n".utf8))
        } info: { source in
            try header(source)
            return ImageInfo(format: format, storedSize: PixelSize(4))
        } decode: { source, request in
            try pixels(source, request)
            return PixelImage(size: PixelSize(4), color: .white)
        }
    }
}

/// Deadlines count processor time from the first byte of the header on, and stop everything that reads.
@Suite struct DeadlineTests {
    private static func limits(_ deadline: Double) -> ImageLimits {
        var limits = ImageLimits()
        limits.deadline = deadline
        return limits
    }

    private func registered(_ decoder: ScriptedDecoder, _ body: () async throws -> Void) async throws {
        try ImageDecoder.register(decoder.codec)
        defer { ImageDecoder.unregister(decoder.format) }
        try await body()
    }

    /// Reads the first byte until that fails.
    private static func readForEver(_ source: ByteSource) throws {
        while true { _ = try source.bytes(at: 0, count: 1) }
    }

    @Test func endlessHeadersEndAtTheDeadline() async throws {
        var decoder = ScriptedDecoder("endless-header")
        decoder.header = Self.readForEver
        try await registered(decoder) {
            let limits = Self.limits(0.05)
            let late = ImageError.timedOut(input: "endless-header")
            #expect(throws: late) { try ImageInfo(of: decoder.input, limits: limits) }
            #expect(throws: late) { try ImageDecoder(limits: limits).decode(decoder.input) }
            #expect(throws: late) { try AnimatedImage(decoder.input, limits: limits) }
            #expect(throws: late) { try ImageDecoder(limits: limits).embeddedPreview(of: decoder.input, at: .fit(2)) }
            await #expect(throws: late) { try await ImageDecoder(limits: limits).info(of: decoder.input) }
        }
    }

    @Test func headersThatHideFailedReadsEndAtTheDeadline() async throws {
        var decoder = ScriptedDecoder("hiding-header")
        decoder.header = { source in try? Self.readForEver(source) }
        try await registered(decoder) {
            #expect(throws: ImageError.timedOut(input: "hiding-header")) {
                try ImageInfo(of: decoder.input, limits: Self.limits(0.05))
            }
        }
    }

    @Test func headersEndWithTheirTask() async throws {
        let begun = Gate()
        var decoder = ScriptedDecoder("cancelled-header")
        decoder.header = { source in
            begun.open()
            try Self.readForEver(source)
        }
        try await registered(decoder) {
            let input = decoder.input
            let task = Task { try await ImageDecoder().info(of: input) }
            await begun.wait()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            let token = CancellationToken()
            token.cancel()
            #expect(throws: ImageError.cancelled(input: "cancelled-header")) {
                try ImageInfo(of: input, cancellation: token)
            }
        }
    }

    @Test func waitingIsNoWork() async throws {
        var decoder = ScriptedDecoder("waiting-decoder")
        // As on a busy machine: the time passes, and the thread does not run.
        decoder.pixels = { _, _ in usleep(400_000) }
        try await registered(decoder) {
            let image = try ImageDecoder(limits: Self.limits(0.2)).decode(decoder.input)
            #expect(image.width == 4)
        }
    }

    @Test func waitingForEverEndsAtAMultipleOfTheDeadline() async throws {
        var decoder = ScriptedDecoder("blocked-decoder")
        decoder.pixels = { _, request in
            let released = DispatchSemaphore(value: 0)
            request.cancellation.onCancel { released.signal() }
            released.wait()
        }
        try await registered(decoder) {
            #expect(throws: ImageError.timedOut(input: "blocked-decoder")) {
                try ImageDecoder(limits: Self.limits(0.02)).decode(decoder.input)
            }
        }
    }

    @Test func theSearchForCoversCanBeCancelled() throws {
        let token = CancellationToken()
        token.cancel()
        let recording = ByteSource(bytes: Array("fLaC".utf8) + [UInt8](repeating: 0, count: 4_096), name: "sound")
        #expect(throws: ImageError.cancelled(input: "sound")) {
            try RecordingCover(of: recording, cancellation: token)
        }
    }
}
