import ArgumentParser
import VitrineCore
import VitrineImaging
import VitrineStores

/// `vitrine store`: images and files by name.
struct StoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Saves, lists, loads and deletes images and files in a store.",
        discussion: """
            A store keeps files by name until they are deleted. An image store also keeps a thumbnail of each image.

              vitrine store save lake.jpg
              vitrine store load lake.jpg --thumbnail -o small.jpg
            """,
        subcommands: [
            StoreSaveCommand.self, StoreLoadCommand.self, StoreListCommand.self, StoreRenameCommand.self,
            StoreDeleteCommand.self, StoreExistsCommand.self, StorePathCommand.self, StoreImportCommand.self,
            StoreExportCommand.self,
        ])
}

/// The options that select a store.
struct StoreSelection: ParsableArguments {
    @Option(
        help: "Directory of the store. (default: UserDocuments in the user's documents)", completion: .directory)
    var root: String?

    @Flag(help: "Use the store in the user's documents. This is the default.")
    var documents = false

    @Flag(help: "Use the store in the user's cache directory.")
    var caches = false

    @Flag(help: "Use a store of any files, without thumbnails, instead of an image store.")
    var files = false

    @OptionGroup var decoder: DecoderOptions

    func validate() throws {
        guard [root != nil, documents, caches].filter({ $0 }).count <= 1 else {
            throw ValidationError("use only one of --root, --documents and --caches")
        }
    }

    var fileStore: FileStore {
        if let root { return FileStore(.root(root), path: []) }
        return FileStore(caches ? .caches : .documents)
    }

    func imageStore(_ configuration: ImageStore.Configuration = .init()) -> ImageStore {
        var configuration = configuration
        configuration.limits = CommandLimits.current
        if let root { return ImageStore(.root(root), path: [], configuration: configuration) }
        return ImageStore(caches ? .caches : .documents, configuration: configuration)
    }

    /// Runs a body. A failure is printed to standard error and gives exit status 1.
    func reportingFailures(_ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as StoreError {
            Diagnostics.write("vitrine store: \(error.advised)")
            throw ExitCode(1)
        }
    }

    /// Throws if there is no directory of the store.
    func requireDirectory() throws {
        guard !Directory.isDirectory(ownFiles.directory) else { return }
        Diagnostics.write("\(ownFiles.directory): there is no store; 'vitrine store save' makes one")
        throw ExitCode(1)
    }
}

extension JSONOption {
    /// Prints the line of a name.
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

extension StoreError {
    /// The description, with the option or command that helps.
    var advised: String {
        switch self {
        case .alreadyExists(let name): "\"\(name)\" exists already; add --replace to replace it"
        case .notFound(let name): "there is nothing named \"\(name)\"; 'vitrine store list' lists the names"
        case .file(let error): "\(error.path): \(error.cause)"
        default: description
        }
    }

    /// The reason, for lines that begin with the name.
    var reason: String {
        if case .image(_, let error) = self { error.reason } else { advised }
    }
}

/// The line of one name. Keys that do not apply are absent.
struct StoreLine: Encodable {
    var name: String
    var path: String?
    var bytes: Int?
    /// The time of the last change, in seconds since 1970.
    var modified: Double?
    var exists: Bool?
    /// The finished and all files of an import or export.
    var done: Int?
    var total: Int?
    var error: String?
}

/// The options for images that are saved.
struct StoreImageOptions: ParsableArguments {
    @Option(help: "Scale images down to this size in pixels: WxH, Wx or xH. (default: off)")
    var maxSize: SizeArgument?

    @Option(help: "Encode images again with this quality from 0 to 100, or from 0 to 1. (default: off)")
    var quality: QualityArgument?

    var configuration: ImageStore.Configuration {
        var configuration = ImageStore.Configuration()
        if let maxSize { configuration.maxSize = PixelSize(width: maxSize.width ?? 0, height: maxSize.height ?? 0) }
        configuration.quality = quality?.value
        return configuration
    }
}
