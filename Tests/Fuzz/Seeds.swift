import Foundation
import TestSupport
import VitrineImaging

/// What mutations begin with: the samples and fixtures of the repository, and the shared files where they are.
enum Seeds {
    /// Files of the repository and of the shared folders, the smaller ones first; of a long one its first 16 KiB.
    private static let files: [[UInt8]] = {
        let tests = Samples.directory.deletingLastPathComponent().appending(path: "Tests")
        let folders = [
            Samples.directory, tests.appending(path: "VitrineImagingTests/Fixtures"),
            tests.appending(path: "VitrinePipelineTests/Fixtures"),
        ]
        var paths = folders.flatMap { folder in
            let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
            return names.sorted().map { folder.appending(path: $0).path }
        }
        paths += Corpus.files(in: "corpus") + Corpus.files(in: "hostile")
        paths += Corpus.files(in: "anything/corpus") + Corpus.files(in: "anything/hostile")
        let contents: [[UInt8]] = paths.compactMap { path in
            guard let file = FileHandle(forReadingAtPath: path), let data = try? file.read(upToCount: maximumCount)
            else { return nil }
            return data.isEmpty ? nil : [UInt8](data)
        }
        return contents.sorted { $0.count < $1.count }
    }()

    private static let maximumCount = 16 << 10

    /// Up to so many files that `isWanted`, spread over all that are at most `size` long.
    static func files(
        _ count: Int = 32, upTo size: Int = maximumCount, where isWanted: ([UInt8]) -> Bool
    ) -> [[UInt8]] {
        let found = files.filter { $0.count <= size && isWanted($0) }
        guard found.count > count else { return found }
        return (0..<count).map { found[$0 * found.count / count] }
    }

    /// Whole files of shared folders.
    static func whole(in folders: [String]) -> [[UInt8]] {
        folders.flatMap(Corpus.files).compactMap { path -> [UInt8]? in
            guard let data = FileManager.default.contents(atPath: path), !data.isEmpty,
                data.count <= FuzzMutator.maximumCount
            else { return nil }
            return [UInt8](data)
        }
    }

    /// Files of a format.
    static func pictures(_ format: ImageFormat, _ count: Int = 32, upTo size: Int = maximumCount) -> [[UInt8]] {
        files(count, upTo: size) {
            (try? ImageFormat.detect(ByteReader(ByteSource(bytes: $0, name: "seed")))) == format
        }
    }

    /// Small animations of a format.
    static func animations(_ format: ImageFormat) -> [[UInt8]] {
        let found = pictures(format, 400, upTo: 9 << 10).filter { bytes in
            (try? ImageInfo(of: .bytes(bytes, name: "seed")))?.isAnimated ?? false
        }
        return Array(found.prefix(24))
    }

    /// Files that hold pictures, some of each format.
    static func holders(of formats: [ImageFormat]) -> [[UInt8]] {
        formats.flatMap { pictures($0, max(2, 32 / formats.count)) }
    }

    /// A small JPEG file as cameras write them. The smallest one of the shared folders is hostile.
    static let soundJPEG: [UInt8] = {
        let picture = PixelImage(width: 24, height: 18, alpha: .opaque) { pixels in
            for i in pixels.indices { pixels[i] = i % 4 == 3 ? 255 : UInt8(truncatingIfNeeded: i &* 7) }
        }
        return (try? picture.encoded(as: .jpeg())) ?? pictures(.jpeg, 1, upTo: 9 << 10).first ?? [0xFF, 0xD8, 0xFF, 0xD9]
    }()

    /// Small archives of each kind that is shown by a picture.
    static let archives: [[UInt8]] = archiveEntries.map { ZipSample($0).bytes }

    static let archiveEntries: [[ZipSample.Entry]] = {
        let picture = soundJPEG
        let container = "<container><rootfile full-path='a/b.opf'/></container>"
        let package = """
            <package><metadata><meta name='cover' content='c'/></metadata><manifest><item id='c' href='c%2Ejpg'
            media-type='image/jpeg' properties='cover-image'/></manifest><spine><itemref idref='c'/></spine></package>
            """
        let relations = "<Relationships><Relationship Type='x/metadata/thumbnail' Target='/a.jpg'/></Relationships>"
        return [
            [
                .init("mimetype", text: "application/epub+zip"), .init("META-INF/container.xml", text: container),
                .init("a/b.opf", text: package), .init("a/c.jpg", picture),
            ],
            [
                .init("[Content_Types].xml", text: ""), .init("word/a", text: ""),
                .init("_rels/.rels", text: relations), .init("a.jpg", picture),
            ],
            [.init("10.jpg", text: ""), .init("2.jpg", picture), .init("ComicInfo.xml", text: "<Page Image='1'/>")],
            [.init("mimetype", text: "application/x-krita"), .init("preview.png", picture)],
            [.init("AndroidManifest.xml", text: ""), .init("res/mipmap-a/ic_launcher.png", picture)],
        ]
    }()

    /// Files of all formats, some of each.
    static func pictures(_ count: Int = 6, upTo size: Int = maximumCount) -> [[UInt8]] {
        ImageFormat.pictures.flatMap { pictures($0, count, upTo: size) }
    }

    static func containing(_ mark: String, _ count: Int = 16) -> [[UInt8]] {
        let mark = Data(mark.utf8)
        return files(count) { Data($0).range(of: mark) != nil }
    }

    /// A PNG file whose chunks all have the checksum of what they hold.
    static func withChecksums(_ file: [UInt8]) -> [UInt8] {
        var file = file
        var at = 8
        while at <= file.count - 12 {
            let count = file[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
            guard count <= file.count - at - 12 else { break }
            let sum = CRC32.checksum(Array(file[(at + 4)..<(at + 8 + count)]))
            for index in 0..<4 {
                file[at + 8 + count + index] = UInt8(truncatingIfNeeded: sum >> UInt32(24 - 8 * index))
            }
            at += 12 + count
        }
        return file
    }
}
