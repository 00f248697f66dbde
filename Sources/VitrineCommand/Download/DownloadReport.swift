import Foundation
import VitrineCore
import VitrineDownloads

/// How a download is; a line of text or of JSON.
struct DownloadReport: Sendable, Encodable {
    let status: DownloadStatus
    /// Why it is not followed any more, where its status does not tell.
    var error: String?

    init(_ status: DownloadStatus, error: String? = nil) {
        self.status = status
        self.error = error ?? status.failure?.message
    }

    private enum CodingKeys: String, CodingKey {
        case id, url, state, path, received, total, fraction, speed, secondsLeft, restarts, retries, code, error
    }

    /// Every key is always there; what does not apply is null.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(status.id, forKey: .id)
        try container.encode(status.url.absoluteString, forKey: .url)
        try container.encode(status.state, forKey: .state)
        try container.encode(status.path, forKey: .path)
        try container.encode(status.received, forKey: .received)
        try container.encode(status.total, forKey: .total)
        try container.encode(Self.rounded(status.fraction), forKey: .fraction)
        try container.encode(status.speed.map { $0.rounded() }, forKey: .speed)
        try container.encode(Self.rounded(status.timeLeft), forKey: .secondsLeft)
        try container.encode(status.restarts, forKey: .restarts)
        try container.encode(status.retries, forKey: .retries)
        try container.encode(status.failure?.code, forKey: .code)
        try container.encode(error, forKey: .error)
    }

    private static func rounded(_ number: Double?) -> Double? { number.map { ($0 * 1e4).rounded() / 1e4 } }

    /// Says it on standard output, at once, as others may wait for the line; failures as text on standard error.
    func print(asJSON: Bool) {
        if asJSON { return Output.json(self) }
        let name = "\(status.id.prefix(8))  \(status.url.absoluteString)"
        if let error { return Diagnostics.write("\(name): \(status.state.rawValue): \(error)") }
        var parts = [status.state.rawValue]
        if status.state == .completed {
            parts.append(ByteCount(status.received).formatted())
        } else {
            if let fraction = status.fraction { parts.append("\(Int(fraction * 100)) %") }
            if let speed = status.speed { parts.append("\(ByteCount(clamping: speed).formatted())/s") }
        }
        Output.row("\(name)  →  \(status.path)  \(parts.joined(separator: "  "))")
    }
}

extension ByteCount {
    /// The nearest number of bytes there is.
    init(clamping number: Double) {
        self.init(number.isNaN ? 0 : Int(exactly: min(max(0, number), 0x1p62).rounded()) ?? 0)
    }
}
