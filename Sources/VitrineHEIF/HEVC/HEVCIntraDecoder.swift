import VitrineCore
import VitrineImageCore

/// Decodes intra pictures of HEVC with 8 bits and 4:2:0 chroma, such as the tiles of HEIC.
///
/// Pictures with extensions of the format, and such that refer to others, are not decoded.
///
/// Memory: the samples of the picture, and one byte for each four of them.
///
/// Source: ITU-T H.265 (08/2021); numbers in comments are sections of it.
package final class HEVCIntraDecoder {
    /// One channel of a picture. Valid until the next picture, and no longer than the decoder.
    package struct Plane {
        /// The first sample that is shown.
        package let samples: UnsafePointer<UInt8>
        package let bytesPerRow: Int
        package let width: Int
        package let height: Int
    }

    private let sets: HEVCParameterSets
    private let maximumPixels: Int
    private let hasFilters: Bool
    private var picture: HEVCIntraPicture?

    /// Reads the parameter sets of a configuration (hvcC, ISO/IEC 14496-15 §8.3.3).
    ///
    /// - Parameter hasFilters: Whether the loop filters run, which smooth edges of blocks. They cost 7 % of the time.
    ///   Means of blocks of four samples and more hide their work, and no later picture refers to the samples.
    package init(
        configuration: [UInt8], maximumSide: Int, maximumPixels: Int, hasFilters: Bool = true
    ) throws(HEVCFault) {
        (self.maximumPixels, self.hasFilters) = (maximumPixels, hasFilters)
        sets = try HEVCParameterSets(configuration, maximumSide: min(maximumSide, 1 << 16))
    }

    /// The code point of the colour matrix of the last picture, and whether its samples have the full range.
    package var colors: (matrix: Int, isFullRange: Bool) {
        (picture?.sequence.matrix ?? 2, picture?.sequence.isFullRange ?? false)
    }

    /// Decodes one picture: NAL units with their lengths in front.
    package func decode(
        _ stream: UnsafeBufferPointer<UInt8>, _ cancellation: CancellationToken = CancellationToken()
    ) throws(HEVCFault) -> [Plane] {
        var previous: HEVCSliceHeader?
        let lengthSize = sets.lengthSize
        var at = 0
        while at < stream.count {
            guard at + lengthSize <= stream.count else { throw .corrupt("the length of a NAL unit") }
            var length = 0
            for i in 0..<lengthSize { length = length << 8 | Int(stream[at + i]) }
            at += lengthSize
            guard length >= 3, length <= stream.count - at else { throw .corrupt("the length of a NAL unit") }
            let unit = UnsafeBufferPointer(rebasing: stream[at..<(at + length)])
            at += length
            let type = Int(unit[0] >> 1) & 0x3F
            // Other layers, and what is no slice and no parameter set.
            guard unit[0] & 1 == 0, unit[1] >> 3 == 0, type < 35 else { continue }
            guard type == 19 || type == 20 else { throw .unsupported("a NAL unit of type \(type)") }
            let bytes = HEVCBits.payload(unit)
            let header = try HEVCSliceHeader(bytes, sets, previous: previous)
            let picture = try previous == nil ? begin(header.parameters) : picture
            guard let picture else { throw .corrupt("a picture without a beginning") }
            try bytes.withUnsafeBufferPointer { (buffer) throws(HEVCFault) in
                try picture.decode(
                    header, bytes: UnsafeBufferPointer(rebasing: buffer[header.dataStart...]),
                    cancellation: cancellation)
            }
            previous = header
        }
        guard let picture, previous != nil, picture.isComplete else { throw .corrupt("a picture with missing blocks") }
        picture.finish()
        return picture.planes
    }

    private func begin(_ id: Int) throws(HEVCFault) -> HEVCIntraPicture {
        let (parameters, sequence) = try sets.parameters(id)
        guard sequence.width * sequence.height <= maximumPixels else {
            throw .unsupported("a picture beyond the limits")
        }
        if let picture, picture.parameters.id == id {
            picture.begin()
            return picture
        }
        // Before the memory of the next is taken.
        picture = nil
        let picture = try HEVCIntraPicture(sequence, parameters, hasFilters: hasFilters)
        self.picture = picture
        return picture
    }
}
