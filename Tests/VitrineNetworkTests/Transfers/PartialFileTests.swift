#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
@_spi(HTTPCacheEngine) import VitrineNetwork

/// What a part file keeps, for whom, and what it does not believe.
struct PartialFileTests {
    private let directory: TemporaryDirectory
    private var path: String { directory.file("file.vitrine-part") }

    init() throws { directory = try TemporaryDirectory() }

    private func open(_ identity: String = "a", interval: Duration = .seconds(3600)) throws -> PartialFile? {
        try PartialFile.open(path, identity: identity, synchronizingEvery: interval)
    }

    /// A part file with 3,000 bytes of 10,000, let go of.
    private func leave(
        interval: Duration = .seconds(3600), _ act: (PartialFile) throws -> Void = { _ in }
    ) throws {
        let file = try #require(try open(interval: interval))
        var site = Site()
        site.receive(["ETag": "\"v1\"", "Content-Length": "10000"])
        try file.begin(try #require(site.stored.first), from: PartSource(text: "http://h/file"), isWhole: true)
        for start in stride(from: 0, to: 3000, by: 1000) {
            try pattern(10_000)[start..<(start + 1000)].withUnsafeBytes { try file.append($0) }
        }
        try act(file)
        file.release()
    }

    private func rewriteHead(_ change: (inout PartialHead) -> Void) throws {
        let url = URL(filePath: PartialFile.headPath(path))
        var head = try #require(PartialHead(bytes: Array(try Data(contentsOf: url))))
        change(&head)
        try Data(head.bytes()).write(to: url)
    }

    @Test func whatIsThereIsKeptForTheSameBody() throws {
        try leave()
        let file = try #require(try open())
        #expect(file.length == 3000)
        #expect(file.continuation?.validator == "\"v1\"")
        #expect(file.continuation?.total == 10_000)
        #expect(try file.contents() == Array(pattern(10_000)[..<3000]))
        file.release()
        let other = try #require(try open("b"))
        #expect(other.length == 0)
        #expect(other.continuation == nil)
        other.release()
        #expect(directory.names.isEmpty)
    }

    @Test func oneHasItAtATime() throws {
        let first = try #require(try open())
        #expect(try open() == nil)
        first.release()
        let second = try #require(try open())
        #expect(try open() == nil)
        second.discard()
        let third = try #require(try open())
        try third.place(at: directory.file("done"))
        #expect(try open() != nil)
    }

    // MARK: Crashes of the machine

    @Test func ofAnEarlierSessionOnlyWhatWasSynchronizedCounts() throws {
        try leave()
        try rewriteHead { $0.session = "another" }
        let none = try #require(try open())
        #expect(none.length == 0)
        none.discard()
        try leave { file in
            try file.synchronize()
            try [UInt8](repeating: 0, count: 500).withUnsafeBytes { try file.append($0) }
        }
        try rewriteHead { $0.session = "another" }
        let some = try #require(try open())
        #expect(some.length == 3000)
        #expect(try some.contents() == Array(pattern(10_000)[..<3000]))
        // What is added now is of this session.
        try pattern(10_000)[3000..<4000].withUnsafeBytes { try some.append($0) }
        some.release()
        let more = try #require(try open())
        #expect(more.length == 4000)
        more.discard()
    }

    @Test func synchronizesFromTimeToTime() throws {
        try leave(interval: .zero)
        try rewriteHead { $0.session = "another" }
        for _ in 0..<2 {
            let file = try #require(try open())
            #expect(file.length == 3000 && file.head?.durableLength == 3000)
            // Its lock may outlive the object: a child that another thread is starting has it until it is started.
            file.release()
        }
    }

    // MARK: Damage

    @Test func noDamageOfTheHeadGoesUnseen() throws {
        try leave()
        let url = URL(filePath: PartialFile.headPath(path))
        let bytes = Array(try Data(contentsOf: url))
        #expect(PartialHead(bytes: bytes) != nil)
        for index in bytes.indices {
            for bit in [UInt8(1), 0x80] {
                var damaged = bytes
                damaged[index] ^= bit
                #expect(PartialHead(bytes: damaged) == nil, "byte \(index)")
            }
            #expect(PartialHead(bytes: Array(bytes[..<index])) == nil)
        }
        try Data(bytes.dropLast()).write(to: url)
        let file = try #require(try open())
        #expect(file.length == 0)
        file.discard()
    }

    @Test func aBodyWithoutAHeadIsNothing() throws {
        try leave()
        try FileManager.default.removeItem(atPath: PartialFile.headPath(path))
        #expect(try open()?.length == 0)
    }

    @Test func bytesThatWereNotReceivedAreCutOff() throws {
        try leave()
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.truncate(atOffset: 10_001)
        try file.close()
        let opened = try #require(try open())
        #expect(opened.length == 3000)
        #expect(try opened.contents() == Array(pattern(10_000)[..<3000]))
        opened.discard()
    }

    @Test func aBodyLongerThanTheWholeIsNothing() throws {
        try leave { file in try [UInt8](repeating: 0, count: 7001).withUnsafeBytes { try file.append($0) } }
        let opened = try #require(try open())
        #expect(opened.length == 0)
        #expect(opened.continuation == nil)
        opened.discard()
    }

    /// A part file with 150,000 bytes of 400,000, let go of.
    private func leaveBlocks(_ act: (PartialFile) throws -> Void = { _ in }) throws {
        let file = try #require(try open())
        var site = Site()
        site.receive(["ETag": "\"v1\"", "Content-Length": "400000"])
        try file.begin(try #require(site.stored.first), from: PartSource(text: "http://h/file"), isWhole: true)
        for start in stride(from: 0, to: 150_000, by: 10_000) {
            try pattern(400_000)[start..<(start + 10_000)].withUnsafeBytes { try file.append($0) }
        }
        try act(file)
        file.release()
    }

    private var checksumsPath: String { path.replacing(".vitrine-part", with: ".vitrine-sums") }

    @Test(arguments: [(0, 0), (65_535, 0), (65_536, 65_536), (131_072, 131_072), (149_999, 131_072)])
    func changedBytesAndThoseAfterThemAreNotTrusted(offset: Int, kept: Int) throws {
        try leaveBlocks()
        try Destination.damage(path, at: offset)
        let file = try #require(try open())
        #expect(file.length == kept)
        #expect(try file.contents() == Array(pattern(400_000)[..<kept]))
        file.discard()
    }

    @Test(arguments: 0..<24) func changedChecksumsAreNoticed(offset: Int) throws {
        try leaveBlocks()
        try Destination.damage(checksumsPath, at: offset)
        let file = try #require(try open())
        #expect(file.length == offset / 8 * 65_536)
        guard file.length > 0 else { return file.discard() }
        // The rest is received anew, and trusted again.
        try pattern(400_000)[file.length..<150_000].withUnsafeBytes { try file.append($0) }
        file.release()
        let again = try #require(try open())
        #expect(again.length == 150_000)
        #expect(try again.contents() == Array(pattern(400_000)[..<150_000]))
        again.discard()
    }

    @Test func bytesWithoutChecksumsAreNotTrusted() throws {
        try leaveBlocks()
        try FileManager.default.removeItem(atPath: checksumsPath)
        let file = try #require(try open())
        #expect(file.length == 0)
        file.discard()
        #expect(directory.names.isEmpty)
    }

    @Test(arguments: [false, true]) func changedBytesOfAnEarlierSessionAreNoticed(isDamaged: Bool) throws {
        try leaveBlocks { file in
            try file.synchronize()
            // These are of the same block as the last synchronized ones, and are not trusted.
            try pattern(400_000)[150_000..<160_000].withUnsafeBytes { try file.append($0) }
        }
        try rewriteHead { $0.session = "another" }
        if isDamaged { try Destination.damage(path, at: 140_000) }
        let file = try #require(try open())
        #expect(file.length == (isDamaged ? 131_072 : 150_000))
        file.discard()
    }

    // MARK: Pieces

    /// Divides a body of 4 MiB into pieces, and receives all but the last 100,000 bytes of each.
    private func leavePieces() throws -> PieceTable {
        let total = 4 << 20, table = try #require(PieceTable(dividing: total, among: 2)), content = pattern(total)
        let file = try #require(try open())
        var site = Site()
        site.receive(["ETag": "\"v1\"", "Content-Length": "\(total)"])
        try file.begin(try #require(site.stored.first), from: PartSource(text: "http://h/file"), isWhole: true)
        try file.divide(into: table)
        for piece in 0..<table.count {
            let missing = table.missing(of: piece)
            try content[missing.lowerBound..<(missing.upperBound - 100_000)].withUnsafeBytes { bytes in
                _ = try file.write(bytes, to: piece)
            }
        }
        file.release()
        return table
    }

    @Test func changedBytesOfPiecesAreNotTrusted() throws {
        let table = try leavePieces(), content = pattern(4 << 20)
        let whole = try #require(try open())
        let lengths = try #require(whole.pieces?.lengths)
        #expect(lengths.allSatisfy { $0 > 900_000 })
        whole.release()
        try Destination.damage(path, at: table.missing(of: 1).lowerBound + 200_000)
        let file = try #require(try open())
        var kept = lengths
        kept[1] = 200_000 / 65_536 * 65_536
        #expect(file.pieces?.lengths == kept)
        for piece in kept.indices {
            let missing = try #require(file.pieces?.missing(of: piece))
            try content[missing].withUnsafeBytes { bytes in _ = try file.write(bytes, to: piece) }
        }
        try file.join()
        file.release()
        let joined = try #require(try open())
        #expect(joined.length == 4 << 20)
        #expect(try joined.contents() == content)
        joined.release()
        try Destination.damage(path, at: 4_000_000)
        let damaged = try #require(try open())
        #expect(damaged.length == 0)
        damaged.discard()
    }

    @Test func othersFilesAreNotTrusted() throws {
        try directory.write("theirs", to: "elsewhere")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: directory.file("elsewhere"))
        #expect(throws: FileError.self) { try open() }
        try FileManager.default.removeItem(atPath: path)
        mkfifo(path, 0o600)
        #expect(throws: FileError.self) { try open() }
        try FileManager.default.removeItem(atPath: path)
        #expect(directory.read("elsewhere") == "theirs")
    }

    @Test(.enabled(if: Namespace.isRoot, "needs root")) func filesOfAnotherUserAreNotTrusted() throws {
        try leave()
        // A head that another user put there.
        chown(PartialFile.headPath(path), 1, 1)
        let file = try #require(try open())
        #expect(file.length == 0)
        file.discard()
        try leave()
        chown(path, 1, 1)
        #expect(throws: FileError.untrusted(path: path, reason: "it does not belong to this user alone")) { try open() }
    }

    // MARK: Names

    @Test func longNamesHavePartsToo() throws {
        let name = String(repeating: "é", count: 127)
        let path = PartialFile.path(for: directory.file(name))
        let file = try #require(try PartialFile.open(path, identity: "a"))
        #expect(PartialFile.path(for: directory.file("x" + name.dropLast())) != path)
        try file.place(at: directory.file(name))
        #expect(directory.names == [name])
    }

    @Test func abandonedPartsAreRemoved() throws {
        try leave()
        let open = try #require(try PartialFile.open(directory.file("open.vitrine-part"), identity: "b"))
        try directory.write("no part", to: "other")
        #expect(try PartialFile.removeAbandoned(in: directory.path, olderThan: .seconds(3600)) == 0)
        #expect(directory.names.count == 5)
        #expect(try PartialFile.removeAbandoned(in: directory.path, olderThan: .zero) == 1)
        #expect(directory.names == ["open.vitrine-part", "other"])
        open.discard()
    }
}
#endif
