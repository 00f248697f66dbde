import Testing
import VitrineImaging
import VitrinePNG

@Suite struct PNGTextTests {
    private func png() throws -> [UInt8] {
        try PixelImage(size: PixelSize(3), color: PixelColor(red: 1, green: 2, blue: 3)).encoded(as: .png)
    }

    private func entries(_ bytes: [UInt8]) throws -> [String: String] {
        try PNGText.entries(of: ByteSource(bytes: bytes, name: "test"))
    }

    private func chunk(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        func big(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let body = Array(type.utf8) + payload
        return big(UInt32(payload.count)) + body + big(CRC32.checksum(body))
    }

    @Test func textsAreReadAsTheyWereWrittenAndPixelsStay() throws {
        let plain = try png()
        let file = PNGText.adding([("Thumb::URI", "file:///a%20b"), ("Author", "Zoë"), ("Empty", "")], to: plain)
        #expect(try entries(file) == ["Thumb::URI": "file:///a%20b", "Author": "Zoë", "Empty": ""])
        #expect(try entries(plain).isEmpty)
        let image = try ImageDecoder().decode(.bytes(file))
        #expect(image[1, 1] == PixelColor(red: 1, green: 2, blue: 3))
        #expect(file.count == plain.count + 12 + 24 + 12 + 10 + 12 + 6)
    }

    @Test func whatTextChunksCannotHoldIsLeftOut() throws {
        let long = String(repeating: "k", count: 80)
        let bad = [("", "a"), (long, "a"), ("日本", "a"), ("A", "日本"), ("B", "zero\0"), ("Good", "yes")]
        #expect(try entries(PNGText.adding(bad, to: png())) == ["Good": "yes"])
        #expect(PNGText.adding([("A", "a")], to: [1, 2, 3]) == [1, 2, 3])
    }

    @Test func theFirstOfTwoCountsAndInternationalTextsToo() throws {
        let file = try png()
        let international = chunk("iTXt", Array("Title\0\0\0de\0Titel\0".utf8) + Array("日本".utf8))
        let compressed = chunk("iTXt", Array("Packed\0\u{1}\0de\0x\0".utf8) + [1, 2, 3])
        let twice = chunk("tEXt", Array("A\0one".utf8)) + chunk("tEXt", Array("A\0two".utf8))
        let more = twice + international + compressed
        #expect(try entries(Array(file[..<33]) + more + file[33...]) == ["A": "one", "Title": "日本"])
        // Behind the pixels, as some programs write them.
        #expect(try entries(Array(file.dropLast(12)) + more + file.suffix(12)) == ["A": "one", "Title": "日本"])
    }

    @Test func damageIsNoText() throws {
        let file = PNGText.adding([("Thumb::URI", "file:///a"), ("B", "b")], to: try png())
        for index in file.indices {
            var bytes = file
            bytes[index] ^= 0x41
            let found = try entries(bytes)
            #expect(found["Thumb::URI"] == nil || found["Thumb::URI"] == "file:///a", "byte \(index)")
            _ = try entries(Array(file[..<index]))
        }
        #expect(try entries([]).isEmpty)
    }

    @Test func allChannelsAreWrittenWhereAsked() throws {
        let image = PixelImage(size: PixelSize(4), color: PixelColor(red: 9, green: 9, blue: 9))
        var options = EncodeOptions()
        #expect(try image.encoded(as: .png)[25] == 0)
        options.writesAllChannels = true
        let bytes = try image.encoded(as: .png, options: options)
        #expect(bytes[24..<26] == [8, 6])
        #expect(try PNGEncoder().encode(image, quality: 1, options: options)[24..<26] == [8, 6])
        #expect(try ImageDecoder().decode(.bytes(bytes))[3, 3] == PixelColor(red: 9, green: 9, blue: 9))
    }
}
