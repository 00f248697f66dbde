/// Goes from frame to frame by their headers and tables of contents, without decoding any.
struct JXLFrameWalker {
    /// Frames and layers looked at; a file cannot make reading its header take longer.
    static let maximumFrames = 65_536

    private let codestream: JXLCodestream

    init(_ codestream: JXLCodestream) {
        self.codestream = codestream
    }

    /// Fills in what an animation is: frames that are shown, seconds, loops. Where the headers end early or make no
    /// sense, what was found before stands.
    func describe(_ info: inout ImageInfo) {
        guard let start = try? JXLFrameStart(codestream), let animation = start.image.animation,
            !start.image.hasPreview
        else { return }
        var (frame, next) = (start.frame, start.sections &+ start.contents.total)
        var (shown, ticks) = (0, 0)
        for _ in 0..<JXLFrameWalker.maximumFrames {
            if frame.isShown {
                shown += 1
                ticks += frame.duration
            }
            guard !frame.isLast, next < codestream.count else { break }
            let offset = next
            let step = try? codestream.parse(at: offset, first: 64) {
                bits throws(JXLFault) -> (JXLFrameHeader, Int) in
                let header = try JXLFrameHeader(&bits, start.image)
                let contents = try JXLTableOfContents(&bits, header)
                return (header, offset &+ bits.position / 8 &+ contents.total)
            }
            guard let step else { break }
            (frame, next) = step
        }
        info.frameCount = max(1, shown)
        guard shown > 1, animation.rate > 0 else { return }
        info.duration = Double(ticks) / animation.rate
        info.loopCount = animation.loopCount
    }
}
