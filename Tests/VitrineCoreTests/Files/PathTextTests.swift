import Foundation
import TestSupport
import Testing
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

struct PathTextTests {
    static let names: [[UInt8]] = [
        [0xFF], [0x80], Array("caf".utf8) + [0xE9] + Array(".jpg".utf8), [0xC3], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
        [0xC0, 0xAF], Array("é日.jpg".utf8), Array("plain".utf8), Array("\u{10FEE9}".utf8), Array("\u{10FE80}\u{10FFFF}".utf8),
        [0xF4, 0x8F, 0xBA], [0xC3, 0xC3, 0xA9], Array("\\xFF %FF \u{FFFD}".utf8),
    ]

    @Test func everyNameHasATextOfItsOwnThatLeadsBackToIt() {
        var seen: Set<[UInt8]> = []
        for name in Self.names {
            let text = PathText.text(of: name)
            #expect(PathText.bytes(of: text) == name)
            #expect(PathText.byteCount(of: text) == name.count)
            #expect(PathText.isExact(text))
            #expect(seen.insert(Array(text.utf8)).inserted)
        }
        #expect(PathText.text(of: [0x61, 0xE9]) == "a\u{10FEE9}")
        #expect(PathText.text(of: Array("é".utf8)) == "é")
    }

    @Test func randomBytesLeadBackToThemselves() {
        var generator = SeededGenerator(9)
        let pieces: [[UInt8]] = [[0xF4], [0x8F], [0xBA], [0x80], [0xC3], [0xA9], [0x61], [0xFF], Array("\u{10FEE9}".utf8)]
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...9, using: &generator)).flatMap { _ in
                pieces.randomElement(using: &generator) ?? []
            }
            #expect(PathText.bytes(of: PathText.text(of: bytes)) == bytes)
        }
    }

    @Test func textThatIsNoNamesTextIsKnown() {
        // The bytes C3 A9 are the letter é.
        #expect(!PathText.isExact("\u{10FEC3}\u{10FEA9}"))
        #expect(PathText.isExact("\u{10FEC3}é"))
    }

    @Test func aPathWithAZeroByteLeadsToNoFile() throws {
        let directory = try TemporaryDirectory()
        try directory.write("x", to: "a")
        #expect(throws: FileError.self) { try FileContents.read(directory.file("a") + "\0b") }
        #expect(!FilePath.exists(directory.file("a") + "\0"))
        #expect(unlink(directory.file("a") + "\0b") == -1 && errno == EINVAL)
        #expect(directory.read("a") == "x")
    }

    @Test func keysThatStandForBytesGetNamesOfTheirOwn() {
        let inexact = "\u{10FEC3}\u{10FEA9}"
        #expect(FileName.escaped(inexact) == "%F4%8F%BB%83%F4%8F%BA%A9")
        for text in [inexact, "é", "a\u{10FEE9}:/", "\u{10FEC3}\u{10FEA9}:%"] {
            #expect(FileName.unescaped(FileName.escaped(text)) == text)
            #expect(PathText.isExact(FileName.escaped(text)))
        }
    }

    #if os(Linux)
    @Test func filesOfAnyNameAreListedReadWrittenAndRenamed() throws {
        let directory = try TemporaryDirectory()
        for name in Self.names {
            let path = directory.file(PathText.text(of: name))
            try AtomicFile.write(name, to: path)
            let bytes = Array(directory.path.utf8) + [0x2F] + name + [0]
            #expect(bytes.map { CChar(truncatingIfNeeded: $0) }.withUnsafeBufferPointer { access($0.baseAddress!, F_OK) } == 0)
            #expect(try FileContents.read(path) == name)
        }
        let items = try DirectoryListing.items(in: directory.path)
        #expect(Set(items.map { PathText.bytes(of: $0.name) }) == Set(Self.names))
        #expect(items.allSatisfy { $0.size.bytes == PathText.byteCount(of: $0.name) && $0.isRegularFile })
        let listed = try Directory.names(ofFilesIn: directory.path)
        #expect(listed == items.map(\.name))
        try FileRename.move(directory.file("\u{10FEFF}"), to: directory.file("\u{10FE81}"), replaces: false)
        #expect(try FileContents.read(directory.file("\u{10FE81}")) == [0xFF])
        #expect(FilePath.resolved(directory.file("\u{10FE81}"))?.hasSuffix("\u{10FE81}") == true)
        let link = directory.file("link")
        #expect(symlink("\u{10FE81}", link) == 0)
        #expect(try SymbolicLink.target(of: link) == directory.file("\u{10FE81}"))
    }

    @Test func aFileIsListedWhoseWholePathIsLongerThanTheSystemTakes() throws {
        let directory = try TemporaryDirectory()
        let long = String(repeating: "n", count: 250)
        var path = directory.path
        while path.utf8.count + 251 < Int(PATH_MAX) - 1 {
            path = FilePath.join(path, long)
            try Directory.create(path)
        }
        let opened = try FileDescriptor(opening: path, flags: O_RDONLY | O_DIRECTORY)
        let file = openat(opened.number, long, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        #expect(file >= 0)
        close(file)
        #expect(FilePath.join(path, long).utf8.count >= Int(PATH_MAX))
        #expect(try DirectoryListing.items(in: path).map(\.name) == [long])
        #expect(unlinkat(opened.number, long, 0) == 0)
    }
    #endif
}
