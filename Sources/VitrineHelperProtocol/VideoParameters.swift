import VitrineImaging

/// Which frame `vitrine-video` is asked for, and how large.
package struct VideoParameters: Sendable, Equatable {
    /// Which frame.
    package enum Moment: UInt8, Sendable {
        /// The first that shows something.
        case poster = 0
        /// The key frame nearest to ``VideoParameters/second``.
        case keyFrame = 1
        /// The frame that is seen at ``VideoParameters/second``.
        case exact = 2
    }

    package var moment = Moment.poster
    /// Seconds from the first frame.
    package var second = 0.0
    /// Whether the last frame stands for all that would come after it.
    package var clampsToEnd = false
    /// Whether a picture that the file has attached goes before the film.
    package var prefersCover = false
    package var size = PixelSize.zero
    package var fit = DocumentFit.none
    package var allowsUpscaling = true

    package init() {}

    package func encoded() -> [UInt8] {
        var wire = WireWriter()
        wire.write(moment.rawValue)
        wire.write(second)
        wire.write(clampsToEnd)
        wire.write(prefersCover)
        wire.write(size.width)
        wire.write(size.height)
        wire.write(fit.rawValue)
        wire.write(allowsUpscaling)
        return wire.bytes
    }

    /// Reads what ``encoded()`` wrote; nil when it is anything else.
    package init?(_ bytes: [UInt8]) {
        var wire = WireReader(bytes)
        moment = wire.enumeration(Moment.self, or: .poster)
        second = wire.double()
        clampsToEnd = wire.bool()
        prefersCover = wire.bool()
        size = PixelSize(width: wire.int(), height: wire.int())
        fit = wire.enumeration(DocumentFit.self, or: .none)
        allowsUpscaling = wire.bool()
        guard wire.isComplete else { return nil }
    }

    /// ``size``, ``fit`` and ``allowsUpscaling`` as a rule for pictures.
    package func resizer(limits: ImageLimits) -> ImageResizer {
        var resizer = ImageResizer(size: size, mode: fit.mode, allowsUpscaling: allowsUpscaling)
        resizer.maximumSide = limits.maximumOutputSide
        return resizer
    }
}
