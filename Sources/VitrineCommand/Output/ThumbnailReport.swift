import Foundation
import VitrineCore
import VitrineImaging
import VitrinePipeline

/// What became of one input at one size; a line of text or of JSON.
struct ThumbnailReport: Sendable, Encodable {
    var input: String
    var output: String?
    var format: String?
    var size: PixelSize?
    var bytes: Int?
    var milliseconds = 0.0
    var error: String?
    var inputSize: PixelSize?
    var inputBytes: Int?
    /// From 1; nil for what has no pages.
    var page: Int?
    /// Second of a film; nil for its poster, and for what is no film.
    var time: Double?
    var source: ThumbnailOrigin?

    init(_ item: InputItem) {
        input = item.name
        guard let path = item.path else { return }
        var status = stat()
        if stat(path, &status) == 0 { inputBytes = Int(status.st_size) }
    }

    init(_ failure: InputFailure) {
        input = failure.name
        error = failure.reason
    }

    mutating func fail(_ error: any Error, after start: ContinuousClock.Instant) {
        self.error = Diagnostics.describe(error).reason
        source = nil
        milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
    }

    private enum CodingKeys: String, CodingKey {
        case input, output, format, width, height, bytes, milliseconds, error, page, time, source
    }

    /// Every key is always there; what does not apply is null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(input, forKey: .input)
        try container.encode(output, forKey: .output)
        try container.encode(format, forKey: .format)
        try container.encode(size?.width, forKey: .width)
        try container.encode(size?.height, forKey: .height)
        try container.encode(bytes, forKey: .bytes)
        try container.encode((milliseconds * 1000).rounded() / 1000, forKey: .milliseconds)
        try container.encode(error, forKey: .error)
        try container.encode(page, forKey: .page)
        try container.encode(time, forKey: .time)
        try container.encode(source, forKey: .source)
    }

    func print(asJSON: Bool, toStandardError: Bool) {
        if asJSON {
            emit(JSONLine.text(self), toStandardError: toStandardError)
        } else if let error {
            Diagnostics.write("\(input): \(error)")
        } else {
            let from = [inputSize.map(\.description), inputBytes.map(Self.bytes)].compactMap(\.self)
            let to = [size.map(\.description), format, bytes.map(Self.bytes)].compactMap(\.self)
            emit(
                "\(input)  \(from.joined(separator: " "))  →  \(output ?? "")  \(to.joined(separator: " "))  "
                    + String(format: "%.1f ms", milliseconds),
                toStandardError: toStandardError)
        }
    }

    private func emit(_ line: String, toStandardError: Bool) {
        if toStandardError { Diagnostics.write(line) } else { Output.row(line) }
    }

    private static func bytes(_ count: Int) -> String {
        count < 1000 ? "\(count) B" : count < 1_000_000
            ? String(format: "%.1f kB", Double(count) / 1e3) : String(format: "%.1f MB", Double(count) / 1e6)
    }
}
