import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrineStores

/// Which store a subcommand is about.
struct StoreSelection: ParsableArguments {
    @OptionGroup var isolation: IsolationOption

    @Option(help: "Directory of the store. Default: UserDocuments in the user's documents.")
    var root: String?

    @Flag(help: "The store in the user's documents, which is the default.")
    var documents = false

    @Flag(help: "The store in the user's directory of caches.")
    var caches = false

    @Flag(help: "Any files, not pictures only: no thumbnails.")
    var files = false

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    func validate() throws {
        guard [root != nil, documents, caches].filter({ $0 }).count <= 1 else {
            throw ValidationError("--root, --documents and --caches name different stores")
        }
    }

    var fileStore: FileStore {
        if let root { return FileStore(.root(root), path: []) }
        return FileStore(caches ? .caches : .documents)
    }

    func imageStore(_ configuration: ImageStore.Configuration = .init()) -> ImageStore {
        if let root { return ImageStore(.root(root), path: [], configuration: configuration) }
        return ImageStore(caches ? .caches : .documents, configuration: configuration)
    }

    /// Runs a body and says on standard error why it failed, for exit status 1.
    func reportingFailures(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as StoreError {
            Diagnostics.write("vitrine store: \(error)")
            throw ExitCode(1)
        }
    }

    /// One line about a name.
    func report(_ line: StoreLine) {
        if json {
            Output.json(line)
        } else if let error = line.error {
            Diagnostics.write("\(line.name): \(error)")
        } else {
            Output.name(line.path ?? line.name)
        }
    }
}

/// What is printed about one name; keys that do not apply are left out.
struct StoreLine: Encodable {
    var name: String
    var path: String?
    var bytes: Int?
    /// When it changed, in seconds since 1970.
    var modified: Double?
    var exists: Bool?
    /// How far an import or export is, in files.
    var done: Int?
    var total: Int?
    var error: String?
}

/// What becomes of pictures that are saved.
struct StorePictureOptions: ParsableArguments {
    @Option(help: "The largest a picture may be: WxH, Wx or xH in pixels. Without it pictures stay as they are.")
    var maxSize: SizeArgument?

    @Option(help: "Quality from 0 to 1. Without it bytes stay as they are where nothing else is asked of them.")
    var quality: Double?

    func validate() throws {
        if let quality, !(0...1).contains(quality) { throw ValidationError("--quality goes from 0 to 1") }
    }

    var configuration: ImageStore.Configuration {
        var configuration = ImageStore.Configuration()
        if let maxSize { configuration.maxSize = PixelSize(width: maxSize.width ?? 0, height: maxSize.height ?? 0) }
        configuration.quality = quality
        return configuration
    }
}
