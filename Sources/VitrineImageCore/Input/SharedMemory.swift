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
/// Unchecked because it holds a raw pointer. One request at a time owns the whole memory. A worker may write to it at
/// any time and is not trusted: its client copies bytes before it reads them. A worker reads its input in place.
package final class SharedMemory: @unchecked Sendable {
    /// Bytes before the payload.
    package static let headerSize = 4_096
    /// The most bytes of the memory.
    package static let memorySize = 1 << 30
    /// Payload bytes whose pages are kept from one request to the next.
    package static let keptPayload = 16 << 20

    package let descriptor: Int32
    private let base: UnsafeMutableRawPointer
    private let size: Int

    /// Creates memory of `size` bytes.
    package convenience init(size: Int = SharedMemory.memorySize) throws(SystemCallError) {
        var descriptor: Int32 = -1
        let code = csandbox_shared_memory(size, &descriptor)
        guard code == 0 else { throw SystemCallError(call: "memfd_create", code: code) }
        try self.init(adopting: descriptor, size: size)
    }

    /// Maps the memory of a descriptor, and takes ownership of the descriptor.
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
        UnsafeMutableRawBufferPointer(start: base + Self.headerSize, count: size - Self.headerSize)
    }

    /// The number of the last request that the worker took.
    package var takenRequest: UInt64 {
        get { csandbox_load(base) }
        set { csandbox_store(base, newValue) }
    }

    /// Returns a copy of `count` payload bytes at `offset`; nil outside of the payload.
    package func copy(at offset: Int, count: Int) -> PixelStorage? {
        guard offset >= 0, count >= 0, count <= payload.count, offset <= payload.count - count else { return nil }
        return PixelStorage(copying: UnsafeRawBufferPointer(rebasing: payload[offset..<(offset + count)]))
    }

    /// Returns the same as an array.
    package func bytes(at offset: Int, count: Int) -> [UInt8]? {
        guard offset >= 0, count >= 0, count <= payload.count, offset <= payload.count - count else { return nil }
        return [UInt8](payload[offset..<(offset + count)])
    }

    /// Returns the memory of a large request to the system.
    package func trim(used: Int) {
        guard used > Self.keptPayload else { return }
        let start = Self.headerSize + Self.keptPayload
        _ = csandbox_release_pages(descriptor, start, size - start)
    }
}

/// The space in the shared memory for an input and its reply, allocated from the payload's start.
///
/// A decoder that allocates its planes here saves the worker a copy.
package final class SharedBuffer: Sendable {
    private let memory: SharedMemory
    private let end = Locked(0)

    /// Makes the whole payload of `memory` available.
    package init(_ memory: SharedMemory) {
        self.memory = memory
    }

    /// Allocates `count` bytes and returns their offset; nil when too few are left.
    package func take(_ count: Int) -> Int? {
        let available = memory.payload.count
        return end.withLock { end in
            guard count >= 0, count <= available - end else { return nil }
            defer { end = min((end + count + 63) & ~63, available) }
            return end
        }
    }

    /// Returns memory for a plane, all zero, in the payload as long as there is space.
    package func storage(byteCount count: Int) -> PixelStorage {
        guard let storage = part(count) else { return PixelStorage(zeroedByteCount: count) }
        // The payload still holds the input and the result of earlier requests.
        storage.bytes.initializeMemory(as: UInt8.self, repeating: 0)
        return storage
    }

    /// Returns the next bytes of the payload with their present content; nil when too few are left.
    package func part(_ count: Int) -> PixelStorage? {
        guard let offset = take(count) else { return nil }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: memory.payload[offset..<(offset + count)])
        return PixelStorage(adopting: bytes) { [memory] _ in withExtendedLifetime(memory) {} }
    }

    /// Returns the offset of `storage` in the payload; nil for other memory.
    package func offset(of storage: PixelStorage) -> Int? {
        guard let start = memory.payload.baseAddress, let address = storage.bytes.baseAddress,
            address >= start, address <= start + memory.payload.count - storage.count
        else { return nil }
        return address - start
    }
}

/// A system call that failed while a worker was set up.
package struct SystemCallError: Error, CustomStringConvertible {
    /// The name of the call.
    package let call: String
    /// The error number.
    package let code: Int32

    package init(call: String, code: Int32) { (self.call, self.code) = (call, code) }

    /// For example "mmap: Cannot allocate memory".
    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}
