#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineCore

/// The peer: a file for each key in 256 directories, written under a temporary name and renamed, read by open, fstat,
/// read, close. Nothing is checked, counted or bounded.
struct FileStore {
    let directory: String

    init(_ directory: String) {
        self.directory = directory
        mkdir(directory, 0o755)
        for index in 0..<256 { mkdir("\(directory)/\(Self.hexadecimal(index))", 0o755) }
    }

    private static func hexadecimal(_ index: Int) -> String { (index < 16 ? "0" : "") + String(index, radix: 16) }

    private func path(_ key: CacheKey) -> String {
        "\(directory)/\(Self.hexadecimal(Int(key.hash64 >> 56)))/\(String(key.hash64, radix: 16))"
    }

    func put(_ bytes: [UInt8], _ key: CacheKey) {
        let path = path(key), temporary = path + ".t"
        let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
        rename(temporary, path)
    }

    func get(_ key: CacheKey) -> [UInt8]? {
        let file = open(path(key), O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var info = stat()
        fstat(file, &info)
        return [UInt8](unsafeUninitializedCapacity: Int(info.st_size)) { buffer, count in
            count = max(0, read(file, buffer.baseAddress, buffer.count))
        }
    }

    func remove(_ key: CacheKey) { unlink(path(key)) }

    /// Number and total size of the files, by listing them.
    func list() -> (count: Int, bytes: Int) {
        var count = 0, bytes = 0
        for index in 0..<256 {
            guard let stream = opendir("\(directory)/\(Self.hexadecimal(index))") else { continue }
            defer { closedir(stream) }
            let descriptor = dirfd(stream)
            while let entry = readdir(stream) {
                var info = stat()
                withUnsafePointer(to: &entry.pointee.d_name) { name in
                    name.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                        guard name[0] != 0x2E, fstatat(descriptor, name, &info, 0) == 0 else { return }
                        count += 1
                        bytes += Int(info.st_size)
                    }
                }
            }
        }
        return (count, bytes)
    }
}
