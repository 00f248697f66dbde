#if SystemCodecs
import Foundation
import TestSupport
import VitrineImaging
import VitrinePipeline

/// A directory tree of photos and videos for one test.
struct MediaFolder {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    var path: String { directory.path }

    func path(_ name: String) -> String { directory.file(name) }

    func makeFolder(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
    }

    func write(_ bytes: [UInt8], _ name: String) throws {
        try makeFolder((name as NSString).deletingLastPathComponent)
        // A new file appears whole, or a library might see it empty first; others are written in place.
        let isNew = !FileManager.default.fileExists(atPath: path(name))
        try Data(bytes).write(to: URL(filePath: path(name)), options: isNew ? .atomic : [])
    }

    /// A photo of 8 by 6 pixels with a date of capture, or none.
    func photo(_ name: String, taken date: String? = nil, offset: String? = nil, orientation: Int = 1) throws {
        try write(Self.photo(taken: date, offset: offset, orientation: orientation), name)
    }

    static func photo(taken date: String? = nil, offset: String? = nil, orientation: Int = 1) throws -> [UInt8] {
        var exif = ExifSample()
        exif.dateTimeOriginal = date
        exif.offsetTimeOriginal = offset
        exif.orientation = orientation
        return try PixelImage(size: PixelSize(width: 8, height: 6), color: .black).encoded(
            as: .jpeg(), metadata: ImageMetadata(exif: exif.bytes))
    }

    func move(_ name: String, to other: String) throws {
        try FileManager.default.moveItem(atPath: path(name), toPath: path(other))
    }

    func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: path(name)) }

    func link(_ name: String, to other: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path(name), withDestinationPath: other)
    }

    func library(_ change: (inout MediaLibrary.Options) -> Void = { _ in }) -> MediaLibrary {
        var options = MediaLibrary.Options()
        options.timeZone = TimeZone(secondsFromGMT: 0) ?? .current
        options.coalescing = .milliseconds(10)
        change(&options)
        return MediaLibrary(directory: path, options: options)
    }

    /// Paths below the folder, in the library's order.
    func names(_ assets: [MediaAsset]) -> [String] { assets.map { String($0.path.dropFirst(path.count + 1)) } }
}
#endif
