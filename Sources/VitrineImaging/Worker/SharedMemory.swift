import CVitrineSandbox
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Memory mapped by a client and its worker alike.
///
/// Unchecked because it holds a raw pointer: one request at a time owns the whole memory on this side, and the other
/// side, which may write at any time, is not trusted: bytes are copied out before they are looked at.
package final class SharedMemory: @unchecked Sendable {
    package let descriptor: Int32
    private let base: UnsafeMutableRawPointer
    private let size: Int

    /// New memory of `size` bytes. Throws the system's error number.
    package convenience init(size: Int = WorkerProtocol.memorySize) throws(SystemCallError) {
        var descriptor: Int32 = -1
        let code = csandbox_shared_memory(size, &descriptor)
        guard code == 0 else { throw SystemCallError(call: "memfd_create", code: code) }
        try self.init(adopting: descriptor, size: size)
    }

    /// Memory behind a descriptor, which it owns from then on.
    package init(adopting descriptor: Int32, size: Int) throws(SystemCallError) {
        var address: UnsafeMutableRawPointer?
        let code = csandbox_map(descriptor, size, &address)
        guard code == 0, let address else {
            close(descriptor)
            throw SystemCallError(call: "mmap", code: code)
        }
        self.descriptor = descriptor
        self.size = size
        base = address
    }

    deinit {
        csandbox_unmap(base, size)
        close(descriptor)
    }

    /// Bytes behind the header.
    package var payload: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: base + WorkerProtocol.headerSize, count: size - WorkerProtocol.headerSize)
    }

    /// The number of the request that the worker took up last.
    package var takenRequest: UInt64 {
        get { csandbox_load(base) }
        set { csandbox_store(base, newValue) }
    }

    /// A copy of `count` payload bytes at `offset`; nil when they are not within it.
    package func copy(at offset: Int, count: Int) -> PixelStorage? {
        guard offset >= 0, count >= 0, count <= payload.count, offset <= payload.count - count else { return nil }
        return PixelStorage(copying: UnsafeRawBufferPointer(rebasing: payload[offset..<(offset + count)]))
    }

    /// The same as an array.
    package func bytes(at offset: Int, count: Int) -> [UInt8]? {
        guard offset >= 0, count >= 0, count <= payload.count, offset <= payload.count - count else { return nil }
        return [UInt8](payload[offset..<(offset + count)])
    }

    /// Gives memory a large request used back to the system.
    package func trim(used: Int) {
        guard used > WorkerProtocol.keptPayload else { return }
        let start = WorkerProtocol.headerSize + WorkerProtocol.keptPayload
        _ = csandbox_release_pages(descriptor, start, size - start)
    }
}

/// Room in the shared memory for one reply, given out from the payload's start.
///
/// A decoder that asks here for its planes has them where they are sent from, which saves a worker the copy.
package final class SharedBuffer: Sendable {
    private let memory: SharedMemory
    private let end = Locked(0)

    /// All of the payload of `memory`, whatever it holds.
    package init(_ memory: SharedMemory) {
        self.memory = memory
    }

    /// The offset of the next `count` bytes; nil when there are not as many.
    package func take(_ count: Int) -> Int? {
        let room = memory.payload.count
        return end.withLock { end in
            guard count >= 0, count <= room - end else { return nil }
            defer { end = min((end + count + 63) & ~63, room) }
            return end
        }
    }

    /// Memory for a plane, in here as long as there is room.
    package func storage(byteCount count: Int) -> PixelStorage {
        guard let offset = take(count) else { return PixelStorage(uninitializedByteCount: count) }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: memory.payload[offset..<(offset + count)])
        return PixelStorage(adopting: bytes) { [memory] _ in withExtendedLifetime(memory) {} }
    }

    /// Where `storage` stands in the payload; nil when it is elsewhere.
    package func offset(of storage: PixelStorage) -> Int? {
        guard let start = memory.payload.baseAddress, let address = storage.bytes.baseAddress,
            address >= start, address <= start + memory.payload.count - storage.count
        else { return nil }
        return address - start
    }
}

/// A system call that failed while a worker was set up.
package struct SystemCallError: Error, CustomStringConvertible {
    /// Its name.
    package let call: String
    /// Its error number.
    package let code: Int32

    /// For example "mmap: Cannot allocate memory".
    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}
