import VitrineCore
import VitrineImaging
import VitrinePipeline
import VitrineWebPages

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One input: a file, an address or standard input, or one page of it.
struct InputItem: Sendable {
    enum Content: Sendable {
        case input(ImageInput)
        /// A web address, whose content is not loaded yet.
        case address(String)
    }

    /// The name in messages and reports: the word of the command line, or the path below it.
    let name: String
    private(set) var content: Content
    /// The directories between the word of the command line and the file. Outputs keep them.
    var folder = ""
    /// The page, if several pages were requested.
    var page: Int?
    /// Whether it was found in a directory. Such an input is passed over if it has no image.
    var isFound = false

    init(name: String, content: Content, folder: String = "") {
        self.name = name
        self.content = content
        self.folder = folder
    }

    /// Makes the input of a word of the command line.
    init(word: String) throws {
        guard !word.isEmpty else { throw InputFailure(name: "''", reason: "the name of the input is empty") }
        name = word
        content = InputArgument.isWebAddress(word) ? .address(word) : .input(try InputArgument.read(word))
    }

    /// Whether it is an address that is not loaded, whose content can change at any time.
    var isAddress: Bool {
        if case .address = content { true } else { false }
    }

    /// The escaped name for people: the name of a file, or an address without its scheme.
    var caption: String {
        switch content {
        case .input(let input): Printable.line(FilePath.name(of: input.name))
        case .address(let address): Printable.line(String(address.drop { $0 != "/" }.drop { $0 == "/" }))
        }
    }

    /// The beginning of the names of outputs.
    var stem: String {
        switch content {
        case .input(.bytes) where ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].contains(name): return "stdin"
        case .input(let input):
            let name = FilePath.name(of: input.name)
            let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 }
            return dot.map { String(name[..<$0]) } ?? name
        case .address(let address):
            if let name = RemoteInput.stem(of: address) { return name }
            let words = address.drop { $0 != ":" }.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".")) }
            return String(words.joined(separator: "-").prefix(80))
        }
    }

    /// The whole name of a file; the stem of other inputs.
    var fileName: String { path.map(FilePath.name) ?? stem }

    /// The path of a file; nil for other inputs.
    var path: String? {
        if case .input(.file(let path)) = content { path } else { nil }
    }

    /// An input whose content can be read.
    struct Opened: Sendable {
        /// The input: of an address, the bytes that were loaded.
        let item: InputItem
        let source: any BlockingImageSource
        /// nil for a web page.
        let kind: FileKind?
    }

    /// Loads an address, and returns the image source. Reads the first bytes of a file on an executor.
    func open(_ options: SourceDetector.Options, web: WebPageOptions) async throws -> Opened {
        guard case .address(let address) = content else {
            return try await BlockingExecutor.shared.run { Result { try opened(options) } }.get()
        }
        if web.webPage {
            var page = WebPageSource(url: address)
            page.policy = web.policy
            page.usesSandbox = !web.noBrowserSandbox
            guard !page.usesSandbox || geteuid() != 0 else {
                let reason = "browsers have no sandbox for the user root; run as another user, or add --no-browser-sandbox"
                throw InputFailure(name: name, reason: reason)
            }
            return Opened(item: self, source: page, kind: nil)
        }
        var loaded = self
        loaded.content = .input(.bytes(try await RemoteInput.load(address, publicOnly: web.publicOnly), name: name))
        return try await BlockingExecutor.shared.run { [loaded] in Result { try loaded.opened(options) } }.get()
    }

    private func opened(_ options: SourceDetector.Options) throws -> Opened {
        guard case .input(let input) = content else { throw ImageError.notAnImage(input: name) }
        guard let kind = try FileKind(of: input, readsText: options.readsText) else {
            // Throws the exact reason, for example that the file is empty.
            _ = try ImageInfo(of: input, limits: CommandLimits.current)
            throw ImageError.notAnImage(input: name)
        }
        return Opened(item: self, source: SourceDetector.source(for: input, of: kind, options), kind: kind)
    }
}

extension Result where Success == InputItem, Failure == InputFailure {
    /// The name of the input, also of one that failed.
    var name: String {
        switch self {
        case .success(let item): item.name
        case .failure(let failure): failure.name
        }
    }
}

/// An input that failed, with the reason.
struct InputFailure: Error, Sendable {
    let name: String
    let reason: String
    /// Whether it is passed over: it was found in a directory, and has no image.
    var isPassedOver = false

    init(name: String, reason: String) {
        (self.name, self.reason) = (name, reason)
    }

    /// The failure of an input.
    init(_ item: InputItem, _ error: any Error) {
        self.init(name: item.name, reason: InputFailure.reason(error))
        isPassedOver = item.isFound && InputFailure.concernsMissingPicture(error)
    }

    /// The reason, for a command that has the option `--waveform`.
    static func reason(_ error: any Error) -> String {
        if case ImagePipelineError.noVideo = error {
            return "it is a recording without a cover; --waveform draws its sound"
        }
        return Diagnostics.describe(error).reason
    }

    private static func concernsMissingPicture(_ error: any Error) -> Bool {
        switch error {
        case let error as ImageError: error.concernsMissingPicture
        case let error as ImagePipelineError: error.concernsMissingPicture
        default: false
        }
    }

    /// The line for people.
    var line: String { isPassedOver ? "\(name): passed over: \(reason)" : "\(name): \(reason)" }
}

/// Turns a word of the command line into an input: `-` for standard input, a `file://` address, or a path. A pipe or
/// another stream at the path is read to its end.
enum InputArgument {
    static func read(_ word: String) throws -> ImageInput {
        let limit = CommandLimits.current.maximumInputBytes
        guard word != "-" else {
            return .bytes(try StandardStream.readInput(limit: limit), name: "standard input")
        }
        let path = FileURI.path(of: word) ?? word
        var status = stat()
        guard stat(path, &status) == 0, [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT) else { return .file(path) }
        do {
            let stream = try FileDescriptor(opening: path, flags: O_RDONLY | O_NOCTTY)
            return .bytes(try StandardStream.readInput(from: stream.number, named: word, limit: limit), name: word)
        } catch let error as FileError {
            throw InputFailure(name: word, reason: error.cause)
        }
    }

    /// Whether the word is a web address.
    fileprivate static func isWebAddress(_ word: String) -> Bool {
        let start = word.prefix(8).lowercased()
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }
}

/// Turns the words of a command line into inputs: directories into the files below them, and documents into pages. All
/// calls block.
struct InputExpansion {
    /// Whether directories stand for the files below them.
    var isRecursive = false
    /// Whether a directory without any input is no failure.
    var mayBeEmpty = false
    /// Directories that are skipped, because outputs go there.
    var excluded: [String] = []
    /// The requested pages of each document and animation.
    var pages: PagesArgument?
    /// The password of encrypted documents.
    var password: String?

    /// Returns the inputs in the order of the words, and of the names in a directory.
    func items(_ words: [String]) -> [Result<InputItem, InputFailure>] {
        words.flatMap { word -> [Result<InputItem, InputFailure>] in
            do {
                return try items(word)
            } catch let failure as InputFailure {
                return [.failure(failure)]
            } catch {
                return [.failure(InputFailure(name: word, reason: Diagnostics.describe(error).reason))]
            }
        }
    }

    private func items(_ word: String) throws -> [Result<InputItem, InputFailure>] {
        let item = try InputItem(word: word)
        guard let path = item.path, Directory.isDirectory(path) else { return split(item) }
        guard isRecursive else {
            throw InputFailure(name: word, reason: "it is a directory; add --recursive to use the files in it")
        }
        var found: [Result<InputItem, InputFailure>] = []
        walk(path, name: word, folder: "", into: &found)
        guard !found.isEmpty || mayBeEmpty else {
            throw InputFailure(name: word, reason: "no file in this directory is an image, PDF or video")
        }
        return found
    }

    /// Finds the inputs below a directory. Skips names that begin with a dot, and links to directories, which can form
    /// cycles.
    private func walk(
        _ path: String, name: String, folder: String, into found: inout [Result<InputItem, InputFailure>]
    ) {
        let items: [DirectoryListing.Item]
        do {
            items = try DirectoryListing.items(in: path)
        } catch {
            found.append(.failure(InputFailure(name: name, reason: Diagnostics.describe(error).reason)))
            return
        }
        for item in items where item.name.utf8.first != UInt8(ascii: ".") {
            let (below, itsName) = (FilePath.join(path, item.name), FilePath.join(name, item.name))
            if item.isDirectory {
                guard !excluded.contains(where: { OutputPlan.isSameFile($0, below) }) else { continue }
                walk(
                    below, name: itsName, folder: folder.isEmpty ? item.name : FilePath.join(folder, item.name),
                    into: &found)
            } else if !Directory.isDirectory(below) {
                do {
                    guard try FileKind(of: .file(below)) != nil else { continue }
                    var input = InputItem(name: itsName, content: .input(.file(below)), folder: folder)
                    input.isFound = true
                    found += split(input)
                } catch where item.isRegularFile || Self.isRegularFile(below) {
                    found.append(.failure(InputFailure(name: itsName, reason: Diagnostics.describe(error).reason)))
                } catch {
                    // A pipe, a device, or a broken link.
                }
            }
        }
    }

    private static func isRegularFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// One item for each page.
    private func split(_ item: InputItem) -> [Result<InputItem, InputFailure>] {
        guard let pages, case .input(let input) = item.content else { return [.success(item)] }
        do {
            switch try FileKind(of: input, readsText: true) {
            case .media?, .font?, .text?: return [.success(item)]
            default: break
            }
            var options = SourceDetector.Options()
            options.password = password
            let count = try SourceDetector.pageCount(of: input, options)
            let numbers = pages.pages(of: count)
            guard !numbers.isEmpty else {
                throw ImagePipelineError.noSuchPage(source: item.name, page: pages.first, count: count)
            }
            return numbers.map { number in
                var page = item
                page.page = number
                return .success(page)
            }
        } catch {
            return [.failure(InputFailure(item, error))]
        }
    }
}
