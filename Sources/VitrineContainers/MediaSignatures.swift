import VitrineImageCore

/// The containers of recordings and videos, by their content.
enum MediaSignatures {
    /// The container of an input; nil for other content.
    static func format(of reader: ByteReader) throws(ImageError) -> MediaFormat? {
        switch try beginning(reader) {
        case .ogg: try ogg(reader)
        case .asf: try asf(reader)
        case let format?: format
        case nil: try isMPEGAudio(reader) ? .mp3 : nil
        }
    }

    private static func beginning(_ reader: ByteReader) throws(ImageError) -> MediaFormat? {
        if reader.matches("ftyp", at: 4) { return isoMedia(reader) }
        let start = try reader.source.bytes(at: 0, count: 8)
        // QuickTime files of before ftyp begin with any of its atoms (QuickTime File Format, "Movie Atoms").
        let atoms: [StaticString] = ["moov", "mdat", "wide", "free", "skip", "pnot"]
        if start.first == 0, atoms.contains(where: { reader.matches($0, at: 4) }) { return .quickTime }
        // EBML; the document type follows within the header.
        if start.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            let header = try reader.source.bytes(at: 0, count: 64)
            return ByteText.find("webm", in: header, from: 0) != nil ? .webM : .matroska
        }
        if reader.matches("RIFF", at: 0) {
            return reader.matches("AVI ", at: 8) ? .avi : reader.matches("WAVE", at: 8) ? .wave : nil
        }
        if reader.matches("FORM", at: 0) {
            return reader.matches("AIFF", at: 8) || reader.matches("AIFC", at: 8) ? .aiff : nil
        }
        if reader.matches("DSD ", at: 0), reader.matches("fmt ", at: 28) { return .dsf }
        if reader.matches("MAC ", at: 0) { return .ape }
        if reader.matches("wvpk", at: 0) { return .wavPack }
        if reader.matches("MPCK", at: 0) || reader.matches("MP+", at: 0) { return .musepack }
        if reader.matches("tBaK", at: 0) { return .tak }
        if reader.matches("FLV\u{1}", at: 0) { return .flash }
        if start == [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] { return .asf }
        if reader.matches("OggS\0", at: 0) { return .ogg }
        if reader.matches("ID3", at: 0) { return .mp3 }
        if reader.matches("fLaC", at: 0) { return .flac }
        if start.starts(with: [0, 0, 1, 0xBA]) || start.starts(with: [0, 0, 1, 0xB3]) { return .programStream }
        return isTransportStream(reader) ? .transportStream : nil
    }

    /// ISO base media by its major brand (ISO/IEC 14496-12, 4.3).
    private static func isoMedia(_ reader: ByteReader) -> MediaFormat {
        if reader.matches("qt  ", at: 8) { return .quickTime }
        let audio: [StaticString] = ["M4A ", "M4B ", "M4P ", "F4A ", "F4B "]
        return audio.contains { reader.matches($0, at: 8) } ? .mp4Audio : .mp4
    }

    /// Packets of 188 bytes, or of 192 with a time in front, each with a mark (ISO/IEC 13818-1, 2.4.3.2).
    private static func isTransportStream(_ reader: ByteReader) -> Bool {
        [(0, 188), (4, 192)].contains { start, length in
            (0..<5).allSatisfy { reader.matches("G", at: start &+ $0 &* length) }
        }
    }

    // MARK: Recordings and videos in one container

    /// The streams of Ogg begin one behind the other.
    private static func ogg(_ reader: ByteReader) throws(ImageError) -> MediaFormat {
        let start = try reader.source.bytes(at: 0, count: 4_096)
        func holds(_ marks: [StaticString]) -> Bool {
            marks.contains { ByteText.find($0, in: start, from: 0) != nil }
        }
        guard !holds(["theora", "BBCD\0", "OVP80", "video\0"]) else { return .ogg }
        return holds(["\u{1}vorbis", "OpusHead", "Speex   ", "\u{7F}FLAC"]) ? .oggAudio : .ogg
    }

    /// The header of ASF names the kind of each stream; a cover may stand before that.
    private static func asf(_ reader: ByteReader) throws(ImageError) -> MediaFormat {
        let length = (try? reader.u32(at: 16, bigEndian: false)) ?? 0
        let header = try reader.source.bytes(at: 0, count: min(length, 4 << 20))
        let (film, sound) = (asfStream(0xC0, 0xEF, 0x19, 0xBC), asfStream(0x40, 0x9E, 0x69, 0xF8))
        return !contains(film, header) && contains(sound, header) ? .windowsMedia : .asf
    }

    /// The number of a kind of stream (Advanced Systems Format specification, 10.4).
    private static func asfStream(_ first: UInt8...) -> [UInt8] {
        first + [0x4D, 0x5B, 0xCF, 0x11, 0xA8, 0xFD, 0x00, 0x80, 0x5F, 0x5C, 0x44, 0x2B]
    }

    private static func contains(_ mark: [UInt8], _ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == mark.first && bytes[$0...].starts(with: mark) }
    }

    // MARK: MPEG audio

    /// Whether two frames of MPEG audio, layer II or III, begin the input (ISO/IEC 11172-3, 2.4.1.3).
    private static func isMPEGAudio(_ reader: ByteReader) throws(ImageError) -> Bool {
        let first = try reader.source.bytes(at: 0, count: 4)
        guard let length = mpegFrame(first) else { return false }
        let second = try reader.source.bytes(at: length, count: 4)
        return mpegFrame(second) != nil && second[1] == first[1] && second[2] & 0x0C == first[2] & 0x0C
    }

    /// The length of a frame by its header; nil for other bytes.
    private static func mpegFrame(_ header: [UInt8]) -> Int? {
        guard header.count == 4, header[0] == 0xFF, header[1] & 0xE0 == 0xE0 else { return nil }
        let (version, layer) = (header[1] >> 3 & 3, header[1] >> 1 & 3)
        let (rate, frequency) = (Int(header[2] >> 4), Int(header[2] >> 2 & 3))
        guard version != 1, layer == 1 || layer == 2, (1...14).contains(rate), frequency < 3 else { return nil }
        let isFirst = version == 3
        let rates: [Int] =
            !isFirst
            ? [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
            : layer == 1
                ? [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
                : [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
        let samples = [44_100, 48_000, 32_000][frequency] / (isFirst ? 1 : version == 2 ? 2 : 4)
        let slots = !isFirst && layer == 1 ? 72_000 : 144_000
        return slots * rates[rate - 1] / samples + Int(header[2] >> 1 & 1)
    }
}
