import Foundation
import Synchronization
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// A choice of the files of a folder, and their order.
struct GalleryQuery: Sendable, Hashable {
    enum Order: String, Sendable { case name, date, size }

    var folder: [String] = []
    var order = Order.name
    var isDescending = false
    /// Words that all have to be in the name; empty for all files of the folder itself. With words or dates, files of
    /// folders below are found as well.
    var words: [String] = []
    /// Seconds since 1970.
    var earliest: Int64?
    var latest: Int64?

    var isSearch: Bool { !words.isEmpty || earliest != nil || latest != nil }
}

/// The files of a folder or a search, in their order.
final class GalleryListing: Sendable {
    struct Entry: Sendable {
        /// Below the folder; with slashes for a search.
        let name: String
        let stamp: GalleryFiles.Stamp
        let kind: GalleryFiles.Kind
    }

    let number: String
    let query: GalleryQuery
    let folders: [String]
    let entries: [Entry]
    /// The number of entries of each kind, by its number.
    let counts: [Int]
    /// Whether there are more than a listing can hold.
    let isTruncated: Bool

    init(_ query: GalleryQuery, folders: [String], entries: [Entry], isTruncated: Bool) {
        number = String(UInt64.random(in: 1 << 40...1 << 52), radix: 36)
        (self.query, self.folders, self.entries, self.isTruncated) = (query, folders, entries, isTruncated)
        var counts = [Int](repeating: 0, count: GalleryFiles.Kind.allCases.count)
        for entry in entries { counts[entry.kind.number] += 1 }
        self.counts = counts
    }
}

/// Reads folders, and keeps the last listings so that their pages fit together.
final class GalleryListings: Sendable {
    /// Beyond these, files are left out.
    static let maximumEntries = 500_000
    static let maximumFolders = 10_000
    private static let maximumDepth = 32
    private static let keptEntries = 1_000_000

    private let files: GalleryFiles
    private let executor: BlockingExecutor
    /// The last one used is the last.
    private let kept = Mutex<[GalleryListing]>([])

    init(_ files: GalleryFiles, _ executor: BlockingExecutor) { (self.files, self.executor) = (files, executor) }

    /// Returns an earlier listing; nil if it is no longer kept.
    func listing(_ number: String) -> GalleryListing? {
        kept.withLock { kept in
            guard let index = kept.firstIndex(where: { $0.number == number }) else { return nil }
            let listing = kept.remove(at: index)
            kept.append(listing)
            return listing
        }
    }

    /// Reads a folder.
    ///
    /// - Throws: 404 if there is none, 403 if the server may not read it.
    func listing(of query: GalleryQuery) async throws(RequestError) -> GalleryListing {
        let files = files
        let flag = CancellationFlag()
        let result = await withTaskCancellationHandler {
            await executor.run { () -> Result<GalleryListing, RequestError> in
                do throws(RequestError) {
                    return .success(try Self.read(query, files: files, flag: flag))
                } catch {
                    return .failure(error)
                }
            }
        } onCancel: {
            flag.set()
        }
        let listing = try result.get()
        kept.withLock { kept in
            kept.removeAll { $0.query == query }
            kept.append(listing)
            var count = kept.reduce(0) { $0 + $1.entries.count }
            while kept.count > 1, count > Self.keptEntries || kept.count > 32 {
                count -= kept.removeFirst().entries.count
            }
        }
        return listing
    }

    private final class CancellationFlag: Sendable {
        private let flag = Atomic(false)
        var isSet: Bool { flag.load(ordering: .relaxed) }
        func set() { flag.store(true, ordering: .relaxed) }
    }

    private static func read(
        _ query: GalleryQuery, files: GalleryFiles, flag: CancellationFlag
    ) throws(RequestError) -> GalleryListing {
        var folders: [String] = []
        var found: [GalleryListing.Entry] = []
        var isTruncated = false
        let words = query.words.map(folded)
        func take(_ item: GalleryFiles.Item, below path: String) -> Bool {
            guard let kind = item.kind else { return true }
            guard query.earliest.map({ item.stamp.seconds >= $0 }) ?? true,
                query.latest.map({ item.stamp.seconds <= $0 }) ?? true
            else { return true }
            if !words.isEmpty {
                let name = folded(item.name)
                guard words.allSatisfy({ name.contains($0) }) else { return true }
            }
            guard found.count < maximumEntries else {
                isTruncated = true
                return false
            }
            found.append(.init(name: path + item.name, stamp: item.stamp, kind: kind))
            return true
        }
        try files.forEach(in: query.folder) { item in
            if item.kind == nil {
                if folders.count < maximumFolders { folders.append(item.name) } else { isTruncated = true }
            }
            return take(item, below: "") && !flag.isSet
        }
        if query.isSearch {
            var rest = folders.sorted(by: >).map { [$0] }
            var visited = 0
            while found.count < maximumEntries, !flag.isSet, visited < maximumFolders, let path = rest.popLast() {
                visited += 1
                let prefix = path.joined(separator: "/") + "/"
                var below: [[String]] = []
                // Folders that went meanwhile, or that may not be read, have no files.
                try? files.forEach(in: query.folder + path) { item in
                    if item.kind == nil, path.count < maximumDepth {
                        if below.count < maximumFolders { below.append(path + [item.name]) } else { isTruncated = true }
                    }
                    return take(item, below: prefix) && !flag.isSet
                }
                rest += below
            }
            isTruncated = isTruncated || !rest.isEmpty
            folders = words.isEmpty ? [] : folders.filter { name in words.allSatisfy { folded(name).contains($0) } }
        }
        guard !flag.isSet else { throw RequestError(499, code: "client-left", reason: "The request was cancelled.") }
        folders = inOrder(folders) { $0 }
        return GalleryListing(query, folders: folders, entries: sorted(found, query), isTruncated: isTruncated)
    }

    private static func sorted(_ entries: [GalleryListing.Entry], _ query: GalleryQuery) -> [GalleryListing.Entry] {
        var entries = inOrder(entries) { $0.name }
        func byNumber(_ value: (GalleryListing.Entry) -> (Int64, Int64)) {
            entries = entries.enumerated().sorted { one, other in
                let (first, second) = (value(one.element), value(other.element))
                return first == second ? one.offset < other.offset : first < second
            }.map(\.element)
        }
        switch query.order {
        case .name: break
        case .date: byNumber { ($0.stamp.seconds, $0.stamp.nanoseconds) }
        case .size: byNumber { ($0.stamp.bytes, 0) }
        }
        return query.isDescending ? entries.reversed() : entries
    }

    /// Sorts as people do: without regard to case, and numbers by their values.
    private static func inOrder<Value>(_ values: [Value], name: (Value) -> String) -> [Value] {
        values.map { (key: key(name($0)), value: $0) }
            .sorted { one, other in one.key.lexicographicallyPrecedes(other.key) }.map(\.value)
    }

    private static func key(_ name: String) -> [UInt8] {
        var key: [UInt8] = []
        let bytes = Array(name.utf8)
        key.reserveCapacity(bytes.count * 2 + 8)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            guard 48...57 ~= byte else {
                key.append(65...90 ~= byte ? byte | 0x20 : byte)
                index += 1
                continue
            }
            var end = index
            while end < bytes.count, 48...57 ~= bytes[end] { end += 1 }
            let digits = bytes[index..<end].drop { $0 == 48 }
            // Longer numbers are larger ones.
            key.append(48)
            key.append(UInt8(min(digits.count, 255)))
            key.append(contentsOf: digits)
            index = end
        }
        // Names that differ in case or zeros only have an order, too.
        key.append(0)
        key.append(contentsOf: bytes)
        return key
    }

    /// A text without case and accents.
    static func folded(_ text: String) -> String {
        text.utf8.allSatisfy { $0 < 0x80 }
            ? text.lowercased()
            : text.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
    }

    /// Returns the first files of a folder for its cover, and whether there are any files or folders in it.
    func cover(of folder: [String]) async throws(RequestError) -> [String] {
        let files = files
        let result = await executor.run { () -> Result<[String], RequestError> in
            var names: [String] = []
            var below: String?
            var seen = 0
            do throws(RequestError) {
                func look(in folder: [String], prefix: String) throws(RequestError) {
                    try files.forEach(in: folder) { item in
                        seen += 1
                        if item.kind == nil { below = below.map { min($0, item.name) } ?? item.name }
                        if item.kind != nil { names.append(prefix + item.name) }
                        return seen < 2_000
                    }
                }
                try look(in: folder, prefix: "")
                // A folder of folders has the cover of the first.
                if names.isEmpty, let name = below { try look(in: folder + [name], prefix: name + "/") }
            } catch {
                return .failure(error)
            }
            return .success(Array(Self.inOrder(names) { $0 }.prefix(4)))
        }
        return try result.get()
    }
}
