import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// Turns the words of a command line into what is to be shown: directories into the files below them, and documents
/// into pages. Blocks.
struct InputExpansion {
    /// Whether directories are taken apart.
    var isRecursive = false
    /// Whether a directory may be without anything to show.
    var mayBeEmpty = false
    /// Directories that are not entered: where results go.
    var excluded: [String] = []
    /// Pages wanted of each document and animation.
    var pages: PagesArgument?
    /// What encrypted documents are opened with.
    var password: String?

    /// In the order of the words, and of names below a directory.
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
        guard isRecursive else { throw InputFailure(name: word, reason: "is a directory") }
        var found: [Result<InputItem, InputFailure>] = []
        walk(path, name: word, folder: "", into: &found)
        guard !found.isEmpty || mayBeEmpty else {
            throw InputFailure(name: word, reason: "there is nothing in it to make thumbnails of")
        }
        return found
    }

    /// Files below a directory that can be shown. What begins with a dot is passed over, as are links to directories,
    /// which might lead round in a circle.
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
                    found += split(InputItem(name: itsName, content: .input(.file(below)), folder: folder))
                } catch where item.isRegularFile || Self.isRegularFile(below) {
                    found.append(.failure(InputFailure(name: itsName, reason: Diagnostics.describe(error).reason)))
                } catch {
                    // A pipe, a device, a link that leads nowhere.
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
            if case .media? = try FileKind(of: input) { return [.success(item)] }
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
            return [.failure(InputFailure(name: item.name, reason: Diagnostics.describe(error).reason))]
        }
    }
}
