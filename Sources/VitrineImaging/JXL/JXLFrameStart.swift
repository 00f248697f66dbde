/// The first frame that is shown: all headers before its sections.
struct JXLFrameStart {
    let image: JXLImageHeader
    let frame: JXLFrameHeader
    let contents: JXLTableOfContents
    /// Where the sections begin in the codestream.
    let sections: Int

    /// The first frame of the codestream, whatever it is.
    init(_ codestream: JXLCodestream) throws(ImageError) {
        self = try codestream.parse(at: 0, first: 8 << 10) { bits throws(JXLFault) in
            let image = try JXLImageHeader(&bits)
            if image.hasProfile { try JXLProfileStream.skip(&bits) }
            try bits.align()
            return try JXLFrameStart(&bits, image)
        }
    }

    private init(_ bits: inout JXLBits, _ image: JXLImageHeader) throws(JXLFault) {
        self.image = image
        frame = try JXLFrameHeader(&bits, image)
        contents = try JXLTableOfContents(&bits, frame)
        sections = bits.position / 8
    }
}
