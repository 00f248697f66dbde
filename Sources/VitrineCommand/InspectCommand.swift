import ArgumentParser
import Foundation
import VitrineImaging

/// `vitrine inspect`: what the header of each input says.
struct InspectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Says what each input is, without decoding its pixels.")

    @Argument(help: "Pictures; - is standard input.")
    var inputs: [String]

    @Flag(help: "One JSON object a line instead of text.")
    var json = false

    func run() async throws {
        let decoder = ImageDecoder()
        var failures = 0
        await Batch.run(inputs) { _, word in
            do {
                let input = try InputArgument.read(word)
                return InspectReport(input: word, info: try await decoder.info(of: input), error: nil)
            } catch {
                return InspectReport(input: word, info: nil, error: Diagnostics.describe(error).reason)
            }
        } report: { report in
            if report.error != nil { failures += 1 }
            report.print(asJSON: json)
        }
        if failures > 0 { throw ExitCode(1) }
    }
}

/// What is known of one input; a line of text or of JSON.
struct InspectReport: Sendable, Encodable {
    let input: String
    let info: ImageInfo?
    let error: String?

    private enum CodingKeys: String, CodingKey {
        case input, format, width, height, orientation, alpha, colorModel, bitDepth, profile, frames, duration, loops
        case progressive, previews, error
    }

    private struct Preview: Encodable {
        let width: Int?
        let height: Int?
        let bytes: Int
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(input, forKey: .input)
        try container.encode(info?.format.rawValue, forKey: .format)
        try container.encode(info?.size.width, forKey: .width)
        try container.encode(info?.size.height, forKey: .height)
        try container.encode(info?.orientation.rawValue, forKey: .orientation)
        try container.encode(info?.hasAlpha, forKey: .alpha)
        try container.encode(info?.colorModel.rawValue, forKey: .colorModel)
        try container.encode(info?.bitDepth, forKey: .bitDepth)
        try container.encode(
            info.flatMap { $0.colorProfile == nil ? nil : $0.colorProfileName ?? "unnamed" }, forKey: .profile)
        try container.encode(info?.frameCount, forKey: .frames)
        try container.encode(info?.duration, forKey: .duration)
        try container.encode(info?.loopCount, forKey: .loops)
        try container.encode(info?.isProgressive, forKey: .progressive)
        try container.encode(
            info?.embeddedPreviews.map {
                Preview(width: $0.size?.width, height: $0.size?.height, bytes: $0.count)
            }, forKey: .previews)
        try container.encode(error, forKey: .error)
    }

    func print(asJSON: Bool) {
        if asJSON {
            Swift.print(JSONLine.text(self))
        } else if let info {
            Swift.print("\(input)  \(summary(of: info))")
        } else {
            Diagnostics.write("\(input): \(error ?? "unknown")")
        }
    }

    private func summary(of info: ImageInfo) -> String {
        var parts = ["\(info.format.rawValue)", "\(info.size)", "\(info.colorModel.rawValue) \(info.bitDepth)-bit"]
        if info.hasAlpha { parts.append("alpha") }
        if info.orientation != .up { parts.append("orientation \(info.orientation.rawValue)") }
        if info.colorProfile != nil { parts.append("profile \(info.colorProfileName ?? "unnamed")") }
        if info.isProgressive { parts.append("progressive") }
        if let duration = info.duration {
            parts.append("\(info.frameCount) frames in " + String(format: "%.2f s", duration))
        } else if info.frameCount > 1 {
            parts.append("\(info.frameCount) pages")
        }
        parts += info.embeddedPreviews.map { "preview \($0.size?.description ?? "of unknown size")" }
        return parts.joined(separator: ", ")
    }
}
