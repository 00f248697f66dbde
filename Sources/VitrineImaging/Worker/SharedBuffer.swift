import VitrineCore

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
