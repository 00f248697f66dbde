#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The input at work, in a file that outlives the process: mapped, so that keeping it costs a copy and no system call.
///
/// Eight bytes `VFUZZ1\n\0`, the length in eight bytes of the machine's order, and the input.
struct FuzzRecord {
    private static let magic = Array("VFUZZ1\n\0".utf8)
    private static let headerSize = 16

    private let memory: UnsafeMutableRawBufferPointer

    /// nil if the file cannot be made or mapped.
    init?(path: String, capacity: Int) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let size = capacity + Self.headerSize
        guard ftruncate(descriptor, off_t(size)) == 0,
            let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), start != MAP_FAILED
        else { return nil }
        memory = UnsafeMutableRawBufferPointer(start: start, count: size)
        memory.copyBytes(from: Self.magic)
    }

    func keep(_ input: [UInt8]) {
        let input = input.prefix(memory.count - Self.headerSize)
        memory.storeBytes(of: input.count, toByteOffset: 8, as: Int.self)
        UnsafeMutableRawBufferPointer(rebasing: memory[Self.headerSize...]).copyBytes(from: input)
    }

    /// The input in a record's bytes; nil for any other file.
    static func input(in bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count >= headerSize, bytes.starts(with: magic) else { return nil }
        let count = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8, as: Int.self) }
        guard (0...(bytes.count - headerSize)).contains(count) else { return nil }
        return Array(bytes[headerSize..<(headerSize + count)])
    }
}
