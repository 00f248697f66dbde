#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// The expected digest of a file.
///
/// ```swift
/// request.checksum = Checksum("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// ```
public struct Checksum: Sendable, Hashable, CustomStringConvertible {
    /// The algorithm of a digest. Collisions of MD5 and SHA-1 can be made on purpose.
    package enum Algorithm: String, Sendable, Hashable, CaseIterable {
        case sha256, sha1, md5

        /// The number of digits of a digest.
        var length: Int {
            switch self {
            case .sha256: 64
            case .sha1: 40
            case .md5: 32
            }
        }
    }

    package let algorithm: Algorithm
    /// The digest in lower-case hexadecimal digits.
    package let digest: String

    /// - Returns: nil if the digest does not have the length of the algorithm or has other characters.
    package init?(_ algorithm: Algorithm, _ digest: String) {
        let digest = digest.lowercased()
        guard digest.utf8.count == algorithm.length, digest.utf8.allSatisfy(Self.isDigit) else { return nil }
        self.algorithm = algorithm
        self.digest = digest
    }

    private init(algorithm: Algorithm, digits: String) {
        self.algorithm = algorithm
        digest = digits
    }

    /// Creates a checksum from text: `sha256:`, `sha1:` or `md5:`, followed by the hexadecimal digits of the digest.
    ///
    /// The name of the algorithm may contain `-`, as in `sha-256`. Case does not matter.
    ///
    /// - Parameter text: The text.
    /// - Returns: nil for any other text.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let algorithm = Algorithm(rawValue: parts[0].lowercased().filter { $0 != "-" })
        else { return nil }
        self.init(algorithm, String(parts[1]))
    }

    /// The algorithm and the digest, as ``init(_:)`` reads them.
    public var description: String { "\(algorithm.rawValue):\(digest)" }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Returns the checksum of a file. Blocks.
    ///
    /// - Parameter cancellation: Polled at every mebibyte.
    static func of(
        _ path: String, _ algorithm: Algorithm, cancellation: CancellationToken
    ) throws(FileError) -> Checksum {
        let digits =
            switch algorithm {
            case .sha256: try digits(of: path, SHA256Digest(), cancellation)
            case .sha1: try digits(of: path, SHA1Digest(), cancellation)
            case .md5: try digits(of: path, MD5Digest(), cancellation)
            }
        return Checksum(algorithm: algorithm, digits: digits)
    }

    private static func digits(
        of path: String, _ digest: some StreamDigest, _ cancellation: CancellationToken
    ) throws(FileError) -> String {
        var digest = digest
        let file = try FileDescriptor(opening: path, flags: O_RDONLY)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            if cancellation.isCancelled { throw .cancelled(path: path) }
            let count = try buffer.withUnsafeMutableBytes { bytes in
                Result { () throws(FileError) in try file.read(into: bytes) }
            }.get()
            guard count > 0 else { return digest.hexadecimal }
            buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
    }
}

/// The common interface of the digests of VitrineDigests.
private protocol StreamDigest {
    mutating func update(_ bytes: UnsafeRawBufferPointer)
    var hexadecimal: String { get }
}

extension SHA256Digest: StreamDigest {}
extension SHA1Digest: StreamDigest {}
extension MD5Digest: StreamDigest {}
