import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// One thing to show: a file, an address or standard input, perhaps one page of it.
struct InputItem: Sendable {
    enum Content: Sendable {
        case input(ImageInput)
        case webPage(String)
    }

    /// What messages and reports call it: the word of the command line, or the path below it.
    let name: String
    let content: Content
    /// Directories between the one named on the command line and the file, for putting results in their like.
    var folder = ""
    /// Set where several pages were asked for.
    var page: Int?

    init(name: String, content: Content, folder: String = "") {
        self.name = name
        self.content = content
        self.folder = folder
    }

    /// What a word of the command line stands for.
    init(word: String) throws {
        name = word
        content = InputArgument.isWebAddress(word) ? .webPage(word) : .input(try InputArgument.read(word))
    }

    /// Whether it is a page of the web, which may be another one each time.
    var isWebPage: Bool {
        if case .webPage = content { true } else { false }
    }

    /// What a person calls it, fit to be shown: the name of a file, an address without its scheme.
    var caption: String {
        switch content {
        case .input(let input): Printable.line(FilePath.name(of: input.name))
        case .webPage(let address): Printable.line(String(address.drop { $0 != "/" }.drop { $0 == "/" }))
        }
    }

    /// What names of results begin with.
    var stem: String {
        switch content {
        case .input(.bytes): return "stdin"
        case .input(.file(let path)):
            let name = FilePath.name(of: path)
            let dot = name.lastIndex(of: ".").flatMap { $0 == name.startIndex ? nil : $0 }
            return dot.map { String(name[..<$0]) } ?? name
        case .webPage(let address):
            let words = address.drop { $0 != ":" }.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".")) }
            return String(words.joined(separator: "-").prefix(80))
        }
    }

    /// The path; nil for anything but a file.
    var path: String? {
        if case .input(.file(let path)) = content { path } else { nil }
    }

    /// What it can be shown by, and what kind it is where it is a file. Reads the first bytes.
    func source(
        _ options: SourceDetector.Options, web: WebPageOptions
    ) throws -> (source: any ImageSource, kind: FileKind?) {
        switch content {
        case .webPage(let address):
            // The browser's profile goes with this process, also when a signal ends it.
            RunningBrowsers.endOnSignals()
            var page = WebPageSource(url: address)
            page.policy = web.policy
            return (page, nil)
        case .input(let input):
            guard let kind = try FileKind(of: input) else {
                // Says what is wrong with it: that it is empty, for one.
                _ = try ImageInfo(of: input)
                throw ImageError.notAnImage(input: name)
            }
            return (SourceDetector.source(for: input, of: kind, options), kind)
        }
    }
}

/// Something that cannot be shown, and why.
struct InputFailure: Error, Sendable {
    let name: String
    let reason: String
}
