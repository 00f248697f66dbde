import VitrineCore
import VitrineImaging
import VitrineStores

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Saves files in ways that a test interrupts.
struct Saving {
    private let directory: String
    private let files: FileStore.Blocking

    init(_ directory: String) {
        self.directory = directory
        files = FileStore(.root(directory), path: []).blocking
    }

    /// Writes half a file, and commits it when the standard input ends.
    func hold() {
        attempt("held") { () throws(StoreError) in
            let writer = try files.writer(for: "held")
            try writer.write([UInt8](repeating: 1, count: 10_000))
            StoreChild.report("holding")
            var byte: UInt8 = 0
            while read(0, &byte, 1) > 0 {}
            try writer.commit()
        }
    }

    /// Saves groups of files until it is killed.
    func saveGroups(of count: Int) {
        let files = FileStore(.root(directory), path: [], durability: .relaxed)
        for round in 0... {
            attempt("round") { () throws(StoreError) in
                try files.blocking.save((0..<count).map { (name: "g\($0)", bytes: [UInt8(truncatingIfNeeded: round)]) })
            }
        }
    }

    /// Saves while one descriptor more can be opened, and no second one.
    func saveWithoutDescriptors() {
        attempt("first") { () throws(StoreError) in try files.save([1], as: "a") }
        var held: [Int32] = []
        while true {
            let descriptor = open("/dev/null", O_RDONLY)
            if descriptor < 0 { break }
            held.append(descriptor)
        }
        if let last = held.popLast() { close(last) }
        attempt("second") { () throws(StoreError) in try files.save([2], as: "a") }
        for descriptor in held { close(descriptor) }
        value("a")
    }

    /// Replaces, renames and deletes files that are there.
    func change() {
        attempt("replace") { () throws(StoreError) in try files.save([2], as: "a") }
        value("a")
        attempt("rename") { () throws(StoreError) in try files.rename("a", to: "b") }
        value("b")
        attempt("delete") { () throws(StoreError) in try files.delete("c") }
        StoreChild.report("c \(files.exists("c"))")
    }

    /// Saves into new stores in new directories, and tells each save in a file beside them: who records the changes of
    /// files sees when.
    func record(saves: Int) {
        let log = open(directory + "/acknowledged", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        let store = FileStore(.root(directory), path: ["a", "b", "files"]).blocking
        var configuration = ImageStore.Configuration()
        configuration.thumbnailMaxSize = PixelSize(16)
        let pictures = ImageStore(.root(directory), path: ["c", "pictures"], configuration: configuration).blocking
        for number in 0..<saves {
            attempt("save") { () throws(StoreError) in
                if number % 2 == 0 {
                    try store.save([UInt8(truncatingIfNeeded: number)], as: "\(number)")
                } else {
                    try pictures.save(StoreChild.picture(number), as: "\(number).png")
                }
                StoreChild.report("\(number)", to: log)
            }
        }
        close(log)
    }

    private func value(_ name: String) {
        let first = ((try? files.load(name)) ?? []).first
        StoreChild.report("\(name) \(first.map { Int($0) } ?? -1)")
    }

    private func attempt(_ name: String, _ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
            StoreChild.report("\(name) done")
        } catch {
            StoreChild.report("\(name) \(StoreChild.kind(error))")
        }
    }
}
