#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Converts between paths, which are bytes, and text.
///
/// A file name may have any bytes except NUL and `/` (POSIX.1-2017 §3.170), also ones that are not UTF-8. In text, a
/// byte `b` that belongs to no UTF-8 sequence is the private-use character U+10FE00 + `b`, from U+10FE80 to U+10FEFF.
/// In JSON this is `\udbff\udeXX`, whose last two digits are the byte. These characters in valid UTF-8 are converted
/// like invalid bytes. Thus every name has its own text, and every text made here leads back to its name. Compare PEP
/// 383, whose lone surrogates no Swift string can hold.
///
/// Paths from the system go through ``text(of:)``. Paths to the system go through ``withSystemPath(_:failure:_:)``,
/// which the functions in `SystemCalls.swift` call.
package enum PathText {
    private static let base: UInt32 = 0x10FE00
    /// The first UTF-8 byte of all these characters.
    private static let firstByte: UInt8 = 0xF4

    /// Returns the text of a path or name.
    package static func text(of bytes: some Collection<UInt8>) -> String {
        if !bytes.contains(firstByte), let text = String(validating: bytes, as: UTF8.self) { return text }
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

    /// Returns the text of a path that ends with a zero byte.
    package static func text(cString: UnsafePointer<CChar>) -> String {
        let count = UnsafeBufferPointer(start: cString, count: .max).firstIndex(of: 0) ?? 0
        return text(of: UnsafeRawBufferPointer(start: cString, count: count))
    }

    /// Returns the bytes of a path or name, without a zero at the end.
    package static func bytes(of text: String) -> [UInt8] {
        guard text.utf8.contains(firstByte) else { return Array(text.utf8) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if let byte = byte(of: scalar) { bytes.append(byte) } else { bytes += UTF8.encode(scalar) ?? .init() }
        }
        return bytes
    }

    /// Whether the bytes of the text lead back to it. Those of text composed by hand may not.
    package static func isExact(_ text: String) -> Bool {
        guard text.utf8.contains(firstByte) else { return true }
        return self.text(of: bytes(of: text)).utf8.elementsEqual(text.utf8)
    }

    /// Returns the number of bytes that the system sees.
    package static func byteCount(of text: String) -> Int {
        text.utf8.contains(firstByte) ? bytes(of: text).count : text.utf8.count
    }

    /// Returns the byte that a character represents, or nil for all but 128 characters.
    package static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        guard scalar.value >= base + 0x80 else { return nil }
        return UInt8(exactly: scalar.value - base)
    }

    private static func scalar(of byte: UInt8) -> Unicode.Scalar {
        // Bytes below 0x80 are always valid UTF-8.
        Unicode.Scalar(base + UInt32(byte)) ?? "\u{FFFD}"
    }

    /// Calls a body with a path as a C string.
    ///
    /// - Returns: `failure`, with `errno` EINVAL, for a text with a zero byte, which the system would cut off.
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
        return (bytes(of: path).map { CChar(truncatingIfNeeded: $0) } + [0]).withUnsafeBufferPointer { text in
            text.baseAddress.map(body) ?? failure
        }
    }
}

/// Converts between names of files, which are bytes, and text, without loss, for other packages of this repository.
@_spi(Files) public enum FileNameText {
    /// Returns the text of a name. Bytes that are not UTF-8 become private-use characters.
    public static func text(of bytes: some Collection<UInt8>) -> String { PathText.text(of: bytes) }

    /// Returns the bytes of a text that ``text(of:)`` has made.
    public static func bytes(of text: String) -> [UInt8] { PathText.bytes(of: text) }
}

/// The arguments of the process.
package enum ProcessArguments {
    /// All arguments but the first. Bytes that are not UTF-8 are as in ``PathText``; `CommandLine.arguments` repairs
    /// them.
    package static var words: [String] {
        (0..<Int(CommandLine.argc)).dropFirst().compactMap { index in
            CommandLine.unsafeArgv[index].map { PathText.text(cString: $0) }
        }
    }
}
