import VitrineImaging
import VitrineStores

/// Saves until the file system is full, and looks at what became of everything.
struct Filling {
    private let store: ImageStore.Blocking
    private let files: FileStore

    init(_ directory: String, _ store: ImageStore.Blocking) {
        self.store = store
        files = FileStore(.root(directory), path: ["files"])
    }

    func run() {
        attempt("before") { () throws(StoreError) in try store.save(StoreChild.picture(7), as: "kept.png") }
        let body = [UInt8](repeating: 7, count: 50_000)
        var count = 0
        while count < 10_000 {
            do throws(StoreError) {
                try files.blocking.save(body, as: "\(count)")
                count += 1
            } catch {
                StoreChild.report("full \(StoreChild.kind(error))")
                break
            }
        }
        StoreChild.report("saved \(count)")
        // Nothing of these fits.
        let large = [UInt8](repeating: 1, count: 200_000)
        attempt("group") { () throws(StoreError) in
            try files.blocking.save((0..<100).map { (name: "group\($0)", bytes: large) })
        }
        attempt("replacement") { () throws(StoreError) in try files.blocking.save(large, as: "0") }
        attempt("picture") { () throws(StoreError) in try store.save(noise(), as: "kept.png") }
        attempt("copy") { () throws(StoreError) in
            try files.blocking.save(fileAt: "/proc/self/exe", as: "copy")
        }
        check(body, count)
        attempt("thumbnail") { () throws(StoreError) in
            guard try store.image("kept.png", as: .thumbnail).size.width == 16 else { throw .notFound(name: "kept.png") }
        }
        // Deleting makes room again.
        for name in 0..<count { attempt("deletion") { () throws(StoreError) in try files.blocking.delete("\(name)") } }
        attempt("after") { () throws(StoreError) in try store.save(noise(), as: "kept.png") }
    }

    private func check(_ body: [UInt8], _ count: Int) {
        let intact = (0..<count).count { (try? files.blocking.load("\($0)")) == body }
        StoreChild.report("intact \(intact)")
        StoreChild.report("names \((try? files.blocking.names.count) ?? -1)")
        StoreChild.report("temporaries \((try? files.blocking.removeTemporaryFiles(olderThan: .seconds(-5))) ?? -1)")
        StoreChild.report("kept \((try? store.image("kept.png"))?.size.width ?? -1)")
    }

    private func attempt(_ name: String, _ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
            StoreChild.report("\(name) done")
        } catch {
            StoreChild.report("\(name) \(StoreChild.kind(error))")
        }
    }

    /// A picture that takes more than 200,000 bytes.
    private func noise() -> PixelImage {
        var image = StoreChild.picture(0, side: 400)
        var state: UInt32 = 1
        image.withUnsafeMutableBytes { bytes in
            for index in bytes.indices where index % 4 != 3 {
                state = state &* 1_664_525 &+ 1_013_904_223
                bytes[index] = UInt8(truncatingIfNeeded: state >> 24)
            }
        }
        return image
    }
}
