/// Marker codes of a JPEG file, the byte behind 0xFF (ITU-T T.81 table B.1), as far as decoding looks at them.
enum JPEGMarker {
    static let temporary: UInt8 = 0x01
    static let baselineFrame: UInt8 = 0xC0
    static let extendedFrame: UInt8 = 0xC1
    static let progressiveFrame: UInt8 = 0xC2
    static let huffmanTables: UInt8 = 0xC4
    static let arithmeticExtension: UInt8 = 0xC8
    static let arithmeticConditioning: UInt8 = 0xCC
    static let firstRestart: UInt8 = 0xD0
    static let lastRestart: UInt8 = 0xD7
    static let startOfImage: UInt8 = 0xD8
    static let endOfImage: UInt8 = 0xD9
    static let startOfScan: UInt8 = 0xDA
    static let quantizationTables: UInt8 = 0xDB
    static let restartInterval: UInt8 = 0xDD
    static let application0: UInt8 = 0xE0
    static let application14: UInt8 = 0xEE

    /// Whether the marker stands alone, without a length behind it.
    static func isStandalone(_ marker: UInt8) -> Bool {
        marker == temporary || (marker >= firstRestart && marker <= endOfImage)
    }

    static func isRestart(_ marker: UInt8) -> Bool { marker >= firstRestart && marker <= lastRestart }

    /// Whether the marker starts a frame of any process, also those nobody here decodes.
    static func isFrame(_ marker: UInt8) -> Bool {
        marker >= 0xC0 && marker <= 0xCF && marker != huffmanTables && marker != arithmeticExtension
            && marker != arithmeticConditioning
    }
}
