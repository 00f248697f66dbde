import VitrineImaging

/// What `vitrine-video` tells about a file.
package struct VideoDescription: Sendable, Equatable {
    /// Seconds; 0 when the container does not tell.
    package var duration = 0.0
    package var hasVideo = false
    package var hasAudio = false
    package var hasCover = false
    /// Pixels as stored; 0 by 0 without video.
    package var storedSize = PixelSize.zero
    /// Pixels as shown: square, upright; 0 by 0 without video.
    package var size = PixelSize.zero
    package var orientation = Orientation.up
    /// Frames a second; 0 when unknown.
    package var frameRate = 0.0
    /// Short names such as `mov`, `h264`, `aac`; empty for none.
    package var container = ""
    package var videoCodec = ""
    package var audioCodec = ""
    /// As the container has it, ISO 8601 as a rule; empty for none.
    package var created = ""

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(duration)
        wire.write(hasVideo)
        wire.write(hasAudio)
        wire.write(hasCover)
        for side in [storedSize.width, storedSize.height, size.width, size.height] { wire.write(side) }
        wire.write(UInt8(truncatingIfNeeded: orientation.rawValue))
        wire.write(frameRate)
        for text in [container, videoCodec, audioCodec, created] { wire.write(text, limit: 100) }
        return wire.bytes
    }

    /// Reads what ``encoded()`` wrote; nil when it is anything else, or tells what no film has.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        duration = wire.double()
        hasVideo = wire.bool()
        hasAudio = wire.bool()
        hasCover = wire.bool()
        storedSize = PixelSize(width: wire.int(), height: wire.int())
        size = PixelSize(width: wire.int(), height: wire.int())
        let turned = Orientation(rawValue: Int(wire.integer(UInt8.self)))
        frameRate = wire.double()
        container = wire.text()
        videoCodec = wire.text()
        audioCodec = wire.text()
        created = wire.text()
        let sides = 0...(1 << 24)
        guard wire.isComplete, let turned, duration.isFinite, duration >= 0, frameRate.isFinite, frameRate >= 0,
            [storedSize.width, storedSize.height, size.width, size.height].allSatisfy(sides.contains)
        else { return nil }
        orientation = turned
    }
}
