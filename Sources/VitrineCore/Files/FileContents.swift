#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Reads whole files. Blocks: call it on a ``BlockingExecutor``.
public enum FileContents {
    /// The bytes of a file, read to its end whatever size it claims to have (files under `/proc` claim 0).
    ///
    /// - Parameters:
    ///   - path: The file. Symbolic links are followed.
    ///   - limit: The most bytes to accept. Default: no limit.
    /// - Throws: ``FileError/tooLarge(path:limit:)`` above the limit, or why the file cannot be read.
    public static func read(_ path: String, limit: Int = .max) throws(FileError) -> [UInt8] {
        // Without blocking, so that a FIFO without a writer cannot hang the caller.
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let claimed = Int(try file.status().st_size)
        guard claimed <= limit else { throw .tooLarge(path: path, limit: limit) }
        // One byte more than claimed, so that the first read also sees the end.
        var bytes = [UInt8](repeating: 0, count: max(4096, claimed &+ 1))
        var count = 0
        while true {
            if count == bytes.count { bytes.append(contentsOf: repeatElement(0, count: bytes.count)) }
            let read = try fill(&bytes, from: count, with: file)
            if read == 0 { break }
            count += read
            guard count <= limit else { throw .tooLarge(path: path, limit: limit) }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    private static func fill(
        _ bytes: inout [UInt8], from start: Int, with file: borrowing FileDescriptor
    ) throws(FileError) -> Int {
        let result = bytes.withUnsafeMutableBytes { buffer -> Result<Int, FileError> in
            do throws(FileError) {
                return .success(try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[start...])))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
