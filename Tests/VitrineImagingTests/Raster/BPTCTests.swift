import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineImaging

/// DirectDraw surfaces of BC6H and BC7.
@Suite struct BPTCTests {
    /// The samples as stored, without alpha multiplied in.
    private func samples(_ file: [UInt8]) throws -> [UInt8] {
        let info = try ImageInfo(of: .bytes(file, name: "surface"))
        let decoder = try #require(Codecs.standard.decoders(for: .dds).first)
        let decoded = try decoder.decode(
            ByteSource(bytes: file, name: "surface"), DecodeRequest(info: info, target: nil))
        return decoded.planes[0].storage.withUnsafeBytes { Array($0) }
    }

    private static func blocks(_ hexadecimal: String) -> [UInt8] {
        let digits = Array(hexadecimal.utf8)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16) ?? 0
        }
    }

    /// Random blocks of each mode, which use all partitions, rotations and endpoints. The checksum is that of what Pillow
    /// 9.4 decodes from them.
    @Test func blocksOfBC7GiveTheirPixels() throws {
        var random = SeededGenerator(7)
        var data: [UInt8] = []
        for number in 0..<512 {
            var block = random.bytes(16)
            let mode = number % 8
            block[0] = UInt8(truncatingIfNeeded: Int(block[0]) & ~((2 << mode) - 1) | 1 << mode)
            data += block
        }
        let file = RasterPicture(width: 8, height: 1_024).dds(flags: 4, code: "DX10", bits: 0, data: data, dxgi: 98)
        let pixels = try samples(file)
        #expect(Array(pixels.prefix(12)) == [126, 123, 142, 255, 239, 222, 255, 255, 14, 178, 109, 255])
        #expect(CRC32.checksum(pixels) == 0xA9BD_C4C4)
    }

    @Test func blocksOfNoModeAreTransparent() throws {
        let data = [UInt8](repeating: 0, count: 64)
        let file = RasterPicture(width: 6, height: 5).dds(flags: 4, code: "DX10", bits: 0, data: data, dxgi: 97)
        #expect(try samples(file) == [UInt8](repeating: 0, count: 6 * 5 * 4))
    }

    /// A block of each mode, two side by side, and the light of the seventh pixel of each. Pillow 9.4 decodes the unsigned
    /// ones alike; of signed ones, it does not extend the sign of sums.
    @Test(arguments: [false, true])
    func blocksOfBC6HGiveTheirLight(_ isSigned: Bool) throws {
        let data = Self.blocks(isSigned ? Self.signedBlocks : Self.unsignedBlocks)
        let lights = isSigned ? Self.signedLights : Self.unsignedLights
        let height = data.count / 32 * 4
        let file = RasterPicture(width: 8, height: height).dds(
            flags: 4, code: "DX10", bits: 0, data: data, dxgi: isSigned ? 96 : 95)
        let pixels = try samples(file)
        let found = (0..<(lights.count / 3)).flatMap { block -> [UInt8] in
            let at = 3 * ((block / 2 * 4 + 1) * 8 + block % 2 * 4 + 2)
            return Array(pixels[at..<(at + 3)])
        }
        // A float map of the same light.
        let map = Array("PF\n\(lights.count / 3) 1\n-1.0\n".utf8)
            + RasterPicture.floats(lights.map { Float($0) }, isBig: false)
        let image = try ImageDecoder(isolation: .inProcess).decode(.bytes(map, name: "light.pfm"))
        let wanted = image.withUnsafeBytes { bytes in
            (0..<image.width).flatMap { x in (0..<3).map { bytes[4 * x + $0] } }
        }
        #expect(zip(wanted, found).allSatisfy { abs(Int($0) - Int($1)) <= 2 }, "\(found) for \(wanted)")
        #expect(Set(found).count > 15)
    }

    @Test func cutSurfacesAreErrors() throws {
        for format in [95, 98] {
            let file = RasterPicture(width: 8, height: 8).dds(
                flags: 4, code: "DX10", bits: 0, data: [UInt8](repeating: 3, count: 48), dxgi: format)
            #expect(throws: ImageError.self) { try samples(file) }
        }
    }

    private static let unsignedBlocks = """
        b8a5c670231e4997ed4da9d7ea940032c1d65f6f35280a46612affac526bc5d102e82ab81e4847e352f12980d0305147\
        4678a88936a1f25058181318b84991d00acc7103454f2ca18d3fce626c228f4c2ea35fa00d6b0d679ce5d7285e4742cd\
        b2f0c4d4bc283ab30e7d27e25ba344b5b6523913996ae2776f5c4825d59ea0a31a10aed788c3b2ea463aee24d6002d4c\
        9e34ef407916fdaeb713257801a34af003cd0e63d36642f59ea117bb25cc4a1ac776c57f980403e10be57a30a7ef7028\
        0bc862fb91755efd6018a1b96b7140b7af8bc05bcf0433d6b759a7dc51751d70
        """
    private static let unsignedLights = [
        0.018967, 0.150879, 0.409912, 0.401855, 3.072266, 0.629395, 0.20166, 3.537109, 0.262451, 0.823242, 0.212524,
        0.209351, 0.018112, 0.075378, 0.026917, 4.417969, 0.157593, 0.36792, 1.660156, 1.78125, 0.104248, 4.1875,
        2.203125, 3.382812, 0.627441, 0.041565, 0.922363, 6.71875, 0.886719, 1.742188, 0.028351, 2.339844, 0.695312,
        0.693359, 0.430176, 2.921875, 0.110107, 0.265381, 5.566406, 5.914062, 14.617188, 0.098999,
    ]
    /// Without the second mode and the tenth.
    private static let signedBlocks = """
        7419909c297f7ecfacf1e57188322a1f82c4b5983ab2b8415bedff4e35a77f6dc6bd9ac86b3beb8227533e8b52e889c3\
        aa292a813b47e08c26f75769ca94f0a46e0e3dc36c6a5d13a1be3d2a1f4f5abff22720685813194c5a6b82b372e21d7f\
        b6a49f98605519389aceee88e29003a9da499965fc90d7caa2f95865c985433f23287a4c310629763a413937787582bd\
        07ab41f53be321172ce7c5986028aa666b237a5521379956a75b46bbd5407ddd0f50273342aec5520a19897c332f3f8e
        """
    private static let signedLights = [
        0.17041, 5.425781, 0.185669, 3.513672, 0.069519, 0.035339, 0.972168, 0.020462, 0.85498, 0.036102, 8.59375,
        0.379395, 0.825195, 1.395508, 0.139038, 3.035156, 0.859863, 0.239868, 0.055054, 3.556641, 2.574219, 15.820312,
        0.136719, 0.243164, 1.974609, 4.75, 0.133423, 0.13562, 1.604492, 2.146484, 23.671875, 0.057465, 4.632812,
        0.581055, 4.097656, 26.3125,
    ]
}
