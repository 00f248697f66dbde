import ArgumentParser
import VitrineCore
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Words of `-o`.
enum OutputArgument {
    /// Returns the word, and `-` for the other names of standard output.
    static func normalized(_ word: String) -> String {
        ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].contains(word) ? "-" : word
    }

    /// Whether a path has the extension of an image format, also of one that cannot be written.
    static func isImageName(_ path: String) -> Bool {
        let name = FilePath.name(of: path).lowercased()
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
        let ending = String(name[name.index(after: dot)...])
        return ImageFormat.pictures.contains { $0.fileExtensions.contains(ending) }
    }

    /// - Throws: `ValidationError` if a path has the extension of an image format that cannot be written.
    static func checkFormat(of path: String) throws {
        guard isImageName(path), FormatArgument(path: path) == nil else { return }
        throw ValidationError(
            "\(path): images of this format cannot be written; use the extension jpg, png, webp, avif, jxl or gif")
    }
}

/// Writes the results of a run over many files.
///
/// No input is ever overwritten. A file that the command line names is replaced. A file that only the plan names, in the
/// directory of `-o` or by default, is replaced if an earlier run can have made it. Such a file is a regular one of the
/// same format, is no larger than the result may be, and has no metadata unless the result gets some.
struct OutputFiles: Sendable {
    /// The result that is to be written.
    struct Result {
        let format: ImageFormat
        /// The longest side, in pixels, that a result of this run can have.
        let longestSide: Int
        let hasMetadata: Bool
    }

    let inputs: InputFiles
    /// Whether every regular file that is no input is replaced, for `--overwrite`.
    let replacesAll: Bool

    /// Writes a file.
    ///
    /// - Parameters:
    ///   - path: The output.
    ///   - result: The result, if the command line does not name the output itself.
    ///   - input: The path of the input that it is made from.
    /// - Throws: ``ImageError/invalidRequest(reason:)`` if something at the path must stay, and ``FileError``.
    func write(_ bytes: [UInt8], to path: String, replacingOnly result: Result?, madeFrom input: String?) throws {
        if let reason = inputs.refusal(of: path, madeFrom: input) {
            throw ImageError.invalidRequest(reason: reason)
        }
        var status = stat()
        let isThere = lstat(path, &status) == 0
        let isRegular = isThere && status.st_mode & S_IFMT == S_IFREG
        if isRegular, status.st_size == 0 {
            // A file manager made this file and holds it open. It would not see another file in its place.
            let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_NOFOLLOW)
            return try bytes.withUnsafeBytes { try file.write($0) }
        }
        if isThere, let result, !(isRegular && (replacesAll || Self.canBeResult(path, result))) {
            let remedy = isRegular ? "name it with -o, or add --overwrite" : "name another directory with -o"
            throw ImageError.invalidRequest(
                reason: "\(path) exists, and is no thumbnail of an earlier run; \(remedy)")
        }
        try AtomicFile.write(bytes, to: path)
    }

    private static func canBeResult(_ path: String, _ result: Result) -> Bool {
        guard let info = try? ImageInfo(of: .file(path)), info.format == result.format,
            max(info.size.width, info.size.height) <= result.longestSide
        else { return false }
        return result.hasMetadata || (try? ImageMetadata(of: .file(path))) == ImageMetadata()
    }
}
