#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// A file that is read from the place where the last reading ended. Closed with the object.
final class OpenFile: Sendable {
    private let file: FileDescriptor

    private init(_ file: consuming FileDescriptor) { self.file = file }

    var path: String { file.path }

    /// Opens a regular file; blocks.
    static func open(_ path: String) throws(FileError) -> (OpenFile, size: Int) {
        // Without blocking, so that a FIFO without a writer cannot hang the caller.
        let file = try FileDescriptor(opening: path, flags: O_RDONLY | O_NONBLOCK)
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw .untrusted(path: path, reason: "it is no regular file")
        }
        return (OpenFile(file), Int(status.st_size))
    }

    /// Reads at an offset; blocks. Fewer bytes than asked for only at the end.
    func read(_ count: Int, at offset: Int) throws(FileError) -> [UInt8] {
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                guard let base = buffer.baseAddress else { return }
                let size = pread(file.number, base + filled, count - filled, off_t(offset + filled))
                if size == 0 { return }
                if size > 0 {
                    filled += size
                } else if errno != EINTR {
                    code = errno
                    return
                }
            }
        }
        if code != 0 { throw FileError(operation: "pread", path: path, code: code) }
        return bytes
    }
}

/// The bytes of a file, read when they are asked for.
final class FileBody: BodySource {
    private struct State {
        var offset: Int
        var isCancelled = false
    }

    private let file: OpenFile
    private let end: Int
    private let chunkSize: Int
    private let executor: BlockingExecutor
    private let state: Locked<State>

    init(_ file: OpenFile, from start: Int, to end: Int, chunkSize: Int, executor: BlockingExecutor) {
        self.file = file
        self.end = end
        self.chunkSize = chunkSize
        self.executor = executor
        state = Locked(State(offset: start))
    }

    func next() async throws(NetworkError) -> [UInt8]? { try await read(chunkSize) }

    func collect(upTo limit: ByteCount) async throws(NetworkError) -> [UInt8] {
        let rest = end - state.withLock { $0.offset }
        guard rest <= limit.bytes else { throw .bodyTooLarge(url: file.path, limit: limit) }
        return try await read(max(0, rest)) ?? []
    }

    private func read(_ most: Int) async throws(NetworkError) -> [UInt8]? {
        let (offset, isCancelled) = state.withLock { ($0.offset, $0.isCancelled) }
        guard !isCancelled, !Task.isCancelled else { throw .cancelled(url: file.path) }
        let count = min(most, end - offset)
        guard count > 0 else { return nil }
        let bytes = try await executor.onFiles { [file] () throws(FileError) in try file.read(count, at: offset) }
        guard bytes.count == count else {
            throw .truncated(
                url: file.path, received: ByteCount(offset + bytes.count), reason: "the file has become shorter")
        }
        state.withLock { $0.offset = offset + count }
        return bytes
    }

    func cancel() { state.withLock { $0.isCancelled = true } }
}
