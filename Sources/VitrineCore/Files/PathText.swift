#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Converts between paths, which are bytes, and text.
///
/// A file name may have any bytes but NUL and `/` (POSIX.1-2017 §3.170), also such as are no UTF-8. In text a byte `b`
/// that belongs to no UTF-8 sequence is the private-use character U+10FE00 + `b`, from U+10FE80 to U+10FEFF; in JSON
/// this is `\udbff\udeXX`, whose last two digits are the byte. A name that has one of these characters as valid UTF-8
/// is taken for bytes that are none, so that every name has a text of its own and every text made here leads back to
/// its name (compare PEP 383, whose lone surrogates no Swift string can hold).
///
/// Whatever comes from the system as a path goes through ``text(of:)``; whatever goes to it through
/// ``withSystemPath(_:failure:_:)``, which the functions in `SystemCalls.swift` do.
package enum PathText {
    private static let base: UInt32 = 0x10FE00
    /// What the UTF-8 of all these characters begins with.
    private static let firstByte: UInt8 = 0xF4

    /// The text of a path or name.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        guard bytes.contains(firstByte) || String(validating: bytes, as: UTF8.self) == nil else {
            return String(decoding: bytes, as: UTF8.self)
        }
        var scalars = String.UnicodeScalarView()
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var place = bytes.startIndex
        func appendBytes(_ count: Int) {
            for _ in 0..<count {
                scalars.append(scalar(of: bytes[place]))
                bytes.formIndex(after: &place)
            }
        }
        while true {
            switch parser.parseScalar(from: &rest) {
            case .emptyInput: return String(scalars)
            case .error(let length): appendBytes(length)
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                if byte(of: scalar) != nil {
                    appendBytes(encoded.count)
                } else {
                    scalars.append(scalar)
                    place = bytes.index(place, offsetBy: encoded.count)
                }
            }
        }
    }

    /// The text of a path that ends with a zero.
    package static func text(cString: UnsafePointer<CChar>) -> String {
        let count = UnsafeBufferPointer(start: cString, count: .max).firstIndex(of: 0) ?? 0
        return text(of: UnsafeRawBufferPointer(start: cString, count: count))
    }

    /// The bytes of a path or name, without a zero at the end.
    package static func bytes(of text: String) -> [UInt8] {
        guard text.utf8.contains(firstByte) else { return Array(text.utf8) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if let byte = byte(of: scalar) { bytes.append(byte) } else { bytes += UTF8.encode(scalar) ?? .init() }
        }
        return bytes
    }

    /// Whether the bytes of the text lead back to it: those of what is composed by hand may not.
    package static func isExact(_ text: String) -> Bool {
        guard text.utf8.contains(firstByte) else { return true }
        return self.text(of: bytes(of: text)).utf8.elementsEqual(text.utf8)
    }

    /// How many bytes the system sees.
    package static func byteCount(of text: String) -> Int {
        text.utf8.contains(firstByte) ? bytes(of: text).count : text.utf8.count
    }

    /// The byte that a character stands for; nil for all but 128 of them.
    package static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        guard scalar.value >= base + 0x80 else { return nil }
        return UInt8(exactly: scalar.value - base)
    }

    private static func scalar(of byte: UInt8) -> Unicode.Scalar {
        // Bytes below 0x80 are never part of what is no UTF-8.
        Unicode.Scalar(base + UInt32(byte)) ?? "\u{FFFD}"
    }

    /// Calls a body with a path as the system wants it.
    ///
    /// - Returns: `failure`, with `errno` EINVAL, for a text with a zero byte, of which the system would see a part.
    package static func withSystemPath<Result>(
        _ path: String, failure: Result, _ body: (UnsafePointer<CChar>) -> Result
    ) -> Result {
        var path = path
        let (hasZero, mayHaveBytes) = path.withUTF8 { ($0.contains(0), $0.contains(firstByte)) }
        guard !hasZero else {
            errno = EINVAL
            return failure
        }
        guard mayHaveBytes else { return path.withCString(body) }
        return (bytes(of: path).map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { text in
            text.baseAddress.map(body) ?? failure
        }
    }
}

/// The words a process was started with.
package enum ProcessArguments {
    /// All but the first, with bytes that are no UTF-8 as ``PathText`` has them; `CommandLine.arguments` repairs them.
    package static var words: [String] {
        (0..<Int(CommandLine.argc)).dropFirst().compactMap { index in
            CommandLine.unsafeArgv[index].map { PathText.text(cString: $0) }
        }
    }
}
