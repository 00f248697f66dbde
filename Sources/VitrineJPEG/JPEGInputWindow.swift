import VitrineCore
import VitrineImageCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A moving window of 128 KiB over the input, which suffices for a file of any size.
struct JPEGInputWindow: ~Copyable {
    /// Holds the largest marker segment (64 KiB) whole, with as much again so that reads are large.
    private static let capacity = 128 << 10

    let source: ByteSource
    private let memory: ScratchMemory
    private let buffer: UnsafeMutablePointer<UInt8>
    private let capacity: Int
    /// Where in the input the byte behind the window's last one stands.
    private var nextOffset = 0
    private var start = 0
    private var end = 0

    init(_ source: ByteSource) {
        self.source = source
        capacity = max(16, min(JPEGInputWindow.capacity, source.count))
        memory = ScratchMemory(byteCount: capacity)
        // At least 16 bytes are never at address zero.
        buffer = memory.bytes.baseAddress!.bindMemory(to: UInt8.self, capacity: capacity)
    }

    /// The first byte not yet consumed.
    var bytes: UnsafePointer<UInt8> { UnsafePointer(buffer) + start }
    /// Bytes in the window that are not yet consumed.
    var available: Int { end - start }

    /// Where in the input the first byte not yet consumed stands.
    var offset: Int { nextOffset - available }

    /// Consumes `count` bytes, at most ``available``.
    mutating func consume(_ count: Int) { start += count }

    /// Consumes `count` bytes, which may reach beyond the window: they are not read then.
    mutating func skip(_ count: Int) {
        if count <= available {
            start += count
        } else {
            nextOffset += count - available
            start = 0
            end = 0
        }
    }

    /// Makes at least one more byte available, unless the window is full or the input ends.
    ///
    /// - Returns: Whether there are more than before.
    mutating func fill() throws(ImageError) -> Bool {
        if start > 0 {
            if end > start { memmove(buffer, buffer + start, end - start) }
            end -= start
            start = 0
        }
        guard end < capacity, nextOffset < source.count else { return false }
        let available = UnsafeMutableRawBufferPointer(start: buffer + end, count: capacity - end)
        let count = try source.read(into: available, at: nextOffset)
        nextOffset += count
        end += count
        return count > 0
    }

    /// Whether `count` bytes could be made available.
    mutating func require(_ count: Int) throws(ImageError) -> Bool {
        while available < count {
            guard try fill() else { return false }
        }
        return true
    }

    /// Moves to the next marker that is not part of entropy-coded data (a stuffed 0xFF or a restart).
    ///
    /// - Returns: Whether there is one; the window then starts with its 0xFF.
    mutating func seekMarker(_ cancellation: borrowing JPEGCancellation) throws(ImageError) -> Bool {
        while true {
            if available == 0 {
                try cancellation.check()
                guard try fill() else { return false }
            }
            guard let found = memchr(bytes, 0xFF, available) else {
                consume(available)
                continue
            }
            consume(UnsafeRawPointer(found) - UnsafeRawPointer(bytes))
            guard try require(2) else { return false }
            let code = bytes[1]
            if code == 0xFF {
                consume(1)
            } else if code == 0 || JPEGMarker.isRestart(code) {
                consume(2)
            } else {
                return true
            }
        }
    }
}

/// Turns a cancelled token into the error of the input being decoded.
struct JPEGCancellation {
    let token: CancellationToken
    let input: String

    /// - Throws: ``ImageError/cancelled(input:)`` once the token is cancelled.
    func check() throws(ImageError) {
        if token.isCancelled { throw .cancelled(input: input) }
    }
}
