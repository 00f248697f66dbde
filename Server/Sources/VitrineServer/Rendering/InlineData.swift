import Foundation
import VitrineCore

/// The bytes of `data:` URLs (RFC 2397).
enum InlineData {
    static func bytes(of address: String) throws(RequestError) -> [UInt8] {
        let rest = address.dropFirst(5)
        guard let comma = rest.utf8.firstIndex(of: UInt8(ascii: ",")) else {
            throw .badSource("a data URL has a comma before its data")
        }
        let text = String(rest[comma...].dropFirst())
        guard rest[..<comma].lowercased().hasSuffix(";base64") else {
            guard let bytes = percentDecoded(text) else {
                throw .badSource("the data is not percent-encoded correctly")
            }
            return bytes
        }
        var characters = (text.contains("%") ? text.removingPercentEncoding ?? "" : text).filter { $0 != "=" }
        characters = characters.replacing("-", with: "+").replacing("_", with: "/")
        characters += String(repeating: "=", count: (4 - characters.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: characters), !data.isEmpty else {
            throw .badSource("the data is not base64")
        }
        return [UInt8](data)
    }

    private static func percentDecoded(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
}

/// A version of bytes: their number and 128 bits of a digest that is fast. It does not resist bytes that were chosen to
/// collide with others of the same source.
package enum ContentVersion {
    package static func text(of bytes: [UInt8]) -> String {
        // Two sums of 64-bit words, multiplied and folded as in wyhash (Wang Yi, public domain).
        var a: UInt64 = 0xa076_1d64_78bd_642f, b: UInt64 = 0xe703_7ed1_a0b4_28db
        func folded(_ x: UInt64, _ y: UInt64) -> UInt64 {
            let product = x.multipliedFullWidth(by: y)
            return product.high ^ product.low
        }
        bytes.withUnsafeBytes { bytes in
            var at = 0
            while at &+ 16 <= bytes.count {
                let one = bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                let other = bytes.loadUnaligned(fromByteOffset: at &+ 8, as: UInt64.self)
                a = folded(a ^ one, 0x8ebc_6af0_9c88_c6e3 ^ other)
                b = folded(b ^ other, 0x5899_65cc_7537_4cc3 &+ one)
                at &+= 16
            }
            while at < bytes.count {
                a = folded(a ^ UInt64(bytes[at]), 0x9e37_79b9_7f4a_7c15)
                b = folded(b &+ UInt64(bytes[at]), 0xd6e8_feb8_6659_fd93)
                at &+= 1
            }
        }
        let mixed = folded(a, b ^ UInt64(bytes.count))
        return "\(bytes.count).\(String(a ^ mixed, radix: 16)).\(String(b, radix: 16))"
    }
}
