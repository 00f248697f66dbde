/// The first frame that is shown: all headers before its sections.
struct JXLFrameStart {
    let image: JXLImageHeader
    /// The embedded ICC profile.
    let profile: [UInt8]?
    let frame: JXLFrameHeader
    let contents: JXLTableOfContents
    /// Where the sections begin in the codestream.
    let sections: Int

    /// The first frame of the codestream, whatever it is.
    init(_ codestream: JXLCodestream) throws(ImageError) {
        self = try codestream.parse(at: 0, first: 8 << 10) { bits throws(JXLFault) in
            let image = try JXLImageHeader(&bits)
            let encoded = image.hasProfile ? try JXLProfileStream.read(&bits) : nil
            try bits.align()
            return try JXLFrameStart(&bits, image, encoded.flatMap { JXLProfile(encoded: $0)?.bytes })
        }
    }

    private init(_ bits: inout JXLBits, _ image: JXLImageHeader, _ profile: [UInt8]?) throws(JXLFault) {
        self.image = image
        self.profile = profile
        frame = try JXLFrameHeader(&bits, image)
        contents = try JXLTableOfContents(&bits, frame)
        sections = bits.position / 8
    }
}
