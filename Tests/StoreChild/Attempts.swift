import VitrineImaging
import VitrineStores

/// Tries everything in a store that holds `lake.jpg` and must not be changed, and tells how each went.
struct Attempts {
    private let directory: String
    private let store: ImageStore.Blocking

    init(_ directory: String, _ store: ImageStore.Blocking) {
        self.directory = directory
        self.store = store
    }

    func run() {
        let files = FileStore(.root(directory), path: []).blocking
        attempt("save") { () throws(StoreError) in try files.save([1], as: "new") }
        attempt("save-new") { () throws(StoreError) in try files.save([1], as: "new", replacing: false) }
        attempt("group") { () throws(StoreError) in try files.save([(name: "new", bytes: [1])]) }
        attempt("delete") { () throws(StoreError) in try files.delete("lake.jpg") }
        attempt("rename") { () throws(StoreError) in try files.rename("lake.jpg", to: "new") }
        attempt("picture") { () throws(StoreError) in try store.save(StoreChild.picture(1), as: "lake.jpg") }
        attempt("picture-delete") { () throws(StoreError) in try store.delete("lake.jpg") }
        attempt("picture-rename") { () throws(StoreError) in try store.rename("lake.jpg", to: "new") }
        attempt("below") { () throws(StoreError) in
            try FileStore(.root(directory), path: ["below"]).blocking.save([1], as: "new")
        }
        // What can be read still is.
        attempt("load") { () throws(StoreError) in _ = try files.load("lake.jpg") }
        attempt("list") { () throws(StoreError) in _ = try files.list() }
        attempt("names") { () throws(StoreError) in StoreChild.report("count \(try store.names.count)") }
        attempt("thumbnail") { () throws(StoreError) in
            StoreChild.report("width \(try store.image("lake.jpg", as: .thumbnail).width)")
        }
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
