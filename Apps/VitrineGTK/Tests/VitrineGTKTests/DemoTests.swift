import DemoSupport
import Foundation
import Testing
import VitrineImaging

extension GTKTests {
    /// Runs the demos as programs, because only there GLib's loop runs the main actor on the first thread.
    @Suite("Demos") @MainActor struct Demos {
        private let directory: String

        init() throws {
            directory = DemoSupport.path(NSTemporaryDirectory(), "vitrine-gtk-\(UUID().uuidString)")
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        }

        private func file(_ name: String) -> String { DemoSupport.path(directory, name) }

        private func run(
            _ program: String, _ words: String..., environment: [String: String] = [:]
        ) async throws -> (status: Int32, output: String) {
            let process = Process(), pipe = Pipe()
            process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent().appending(path: program)
            process.arguments = words
            process.standardOutput = pipe
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            return try await Task.detached {
                try process.run()
                let output = pipe.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                return (process.terminationStatus, String(decoding: output, as: UTF8.self))
            }.value
        }

        private func paint(_ count: Int) throws {
            for number in 1...count {
                let bytes = try PaintedPicture.landscape(number, width: 240, height: 160).encoded(
                    as: .jpeg(quality: 0.8))
                try Data(bytes).write(to: URL(filePath: file("\(number).jpg")))
            }
        }

        @Test func gridShowsPictures_andWhatIsNone() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try paint(40)
            try Data("no picture".utf8).write(to: URL(filePath: file("0-letter.jpg")))
            let (status, output) = try await run("vitrine-grid", "--auto", "--shot", file("grid.png"), directory)
            #expect(status == 0, "\(output)")
            #expect(output.contains("1 failed"), "\(output)")
            #expect(output.contains("opened 1.jpg, zoomed it, and returned to the same place"), "\(output)")
            #expect(output.contains("no cell is left, and no load runs"), "\(output)")
            let shot = try ImageInfo(of: .file(file("grid.png")))
            #expect(shot.format == .png && shot.size.width > 900, "\(shot)")
        }

        @Test func gridWaitsForTheNetwork() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try paint(6)
            var files: [String: [UInt8]] = [:]
            for number in 1...6 {
                files["\(number).jpg"] = Array(try Data(contentsOf: URL(filePath: file("\(number).jpg"))))
            }
            let server = try FileServer(files, bytesPerSecond: 10_000_000)
            defer { server.stop() }
            server.setOutage(true)
            let list = (1...6).map { server.address("\($0).jpg") }.joined(separator: "\n")
            try Data(list.utf8).write(to: URL(filePath: file("list")))
            async let grid = run("vitrine-grid", "--auto", "--urls", file("list"))
            try await wait(for: "attempts") { server.refused > 12 }
            server.setOutage(false)
            let (status, output) = try await grid
            #expect(status == 0, "\(output)")
            #expect(output.contains("first screen: 6 images, 0 failed"), "\(output)")
        }

        @Test func denseDisplaysGetDensePictures() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            var sizes: [PixelSize] = []
            for scale in ["1", "2"] {
                let (status, output) = try await run(
                    "vitrine-shelf", "--auto", "--size", "500x400", "--shot", file("\(scale).png"),
                    environment: ["GDK_SCALE": scale])
                #expect(status == 0, "\(output)")
                sizes.append(try ImageInfo(of: .file(file("\(scale).png"))).size)
            }
            #expect(sizes[1].width == 2 * sizes[0].width && sizes[1].height == 2 * sizes[0].height)
        }

        @Test func readerTurnsPages() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            #expect(PaintedDocument.write(pages: 14, to: file("document.pdf")))
            let (status, output) = try await run("vitrine-reader", "--auto", file("document.pdf"))
            #expect(status == 0, "\(output)")
            #expect(output.contains("14 pages") && output.contains("turning: 11 pages"), "\(output)")
        }

        @Test func readerSaysWhyADocumentDoesNotOpen() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try Data("no document".utf8).write(to: URL(filePath: file("letter.pdf")))
            let (status, output) = try await run("vitrine-reader", "--auto", file("letter.pdf"))
            #expect(status == 1)
            #expect(output.contains("FAILED") && output.contains("letter.pdf"), "\(output)")
        }

        @Test func shelfKeepsRenamesAndDeletes() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let (status, output) = try await run("vitrine-shelf", "--auto")
            #expect(status == 0, "\(output)")
            for line in ["dropped 9 images", "renamed valley-1.jpg", "refused: letter.jpg", "list.png could not be stored", "no cell is left"] {
                #expect(output.contains(line), "\(output)")
            }
        }

        @Test func downloadsGoOnAfterTheProgramWasKilled() async throws {
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let (status, output) = try await run("vitrine-downloads", "--auto")
            #expect(status == 0, "\(output)")
            #expect(output.contains("killed the first run") && output.contains("6 files are complete"), "\(output)")
            #expect(output.contains("refused: \"ftp://localhost/lake.jpg\""), "\(output)")
        }
    }
}
