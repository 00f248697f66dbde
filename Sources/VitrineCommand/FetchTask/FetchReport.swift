import Foundation
import VitrineCore

/// What became of one address; a line of text or of JSON.
struct FetchReport: Sendable, Encodable {
    var url: String
    var output: String?
    var source: FetchOrigin?
    var status: Int?
    var type: String?
    var bytes: Int?
    /// How many of the bytes were there from a fetch that had broken off.
    var resumed: Int?
    var milliseconds = 0.0
    var error: String?

    init(url: String) { self.url = url }

    init(_ failure: InputFailure) {
        url = failure.name
        error = failure.reason
    }

    private enum CodingKeys: String, CodingKey {
        case url, output, source, status, type, bytes, resumed, milliseconds, error
    }

    /// Every key is always there; what does not apply is null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(url, forKey: .url)
        try container.encode(output, forKey: .output)
        try container.encode(source, forKey: .source)
        try container.encode(status, forKey: .status)
        try container.encode(type, forKey: .type)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(resumed, forKey: .resumed)
        try container.encode((milliseconds * 1000).rounded() / 1000, forKey: .milliseconds)
        try container.encode(error, forKey: .error)
    }

    /// To standard output, unless that is taken.
    func print(asJSON: Bool, toStandardError: Bool) {
        let emit = toStandardError ? Diagnostics.write : Output.row
        if asJSON { return emit(JSONLine.text(self)) }
        if let error { return Diagnostics.write("\(url): \(error)") }
        var what = [type, bytes.map { ByteCount($0).formatted() }].compactMap(\.self)
        if let source { what.append(source.text) }
        if let resumed, resumed > 0 { what.append("\(ByteCount(resumed).formatted()) of it from before") }
        let target = output.map { "  →  \($0)" } ?? ""
        emit("\(url)\(target)  \(what.joined(separator: "  "))  " + String(format: "%.1f ms", milliseconds))
    }
}
