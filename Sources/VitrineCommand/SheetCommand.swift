import ArgumentParser
import Foundation
import VitrineCore
import VitrineImaging

/// `vitrine sheet`: all inputs on one picture, with captions.
struct SheetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sheet",
        abstract: "Draws a contact sheet: all inputs on one PNG, with captions.")

    @Argument(help: "Pictures; - is standard input.")
    var inputs: [String]

    @Option(help: "Height of each picture, in pixels; it may be a third wider.")
    var size = 200

    @Option(help: "Pictures a row. Default: about as wide as high.")
    var columns: Int?

    @Option(name: [.customShort("o"), .long], help: "The PNG to write.")
    var output: String

    func validate() throws {
        guard (16...1024).contains(size) else { throw ValidationError("--size goes from 16 to 1024") }
        if let columns {
            guard (1...64).contains(columns) else { throw ValidationError("--columns goes from 1 to 64") }
        }
    }

    func run() async throws {
        let decoder = ImageDecoder()
        var cells: [ContactSheet.Item] = []
        var failures = 0
        await Batch.run(inputs) { [size] _, word in
            do {
                return Entry(cell: try await Self.cell(word, size: size, decoder: decoder))
            } catch {
                return Entry(failure: "\(word): \(Diagnostics.describe(error).reason)")
            }
        } report: { entry in
            if let cell = entry.cell { cells.append(cell) }
            if let failure = entry.failure {
                failures += 1
                Diagnostics.write(failure)
            }
        }
        if !cells.isEmpty {
            let sheet = try ContactSheet(columns: columns, pictureSize: PixelSize(width: size * 4 / 3, height: size))
                .draw(cells)
            try AtomicFile.write(try sheet.encoded(as: .png), to: output)
        }
        if failures > 0 { throw ExitCode(1) }
    }

    /// A picture for the sheet, or why there is none.
    private struct Entry: Sendable {
        var cell: ContactSheet.Item?
        var failure: String?
    }

    private static func cell(_ word: String, size: Int, decoder: ImageDecoder) async throws -> ContactSheet.Item {
        let input = try InputArgument.read(word)
        let info = try await decoder.info(of: input)
        var resizer = ImageResizer.fit(width: size * 4 / 3, height: size)
        resizer.allowsUpscaling = false
        let image = try await decoder.image(from: input, at: resizer)
        return ContactSheet.Item(
            image, title: URL(filePath: input.name).lastPathComponent,
            detail: "\(info.size) \(info.format.rawValue)")
    }
}
