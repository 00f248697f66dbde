import DemoSupport
import Foundation
import VitrineImaging

/// Runs this program twice with a local server, and kills the first run halfway.
struct Relaunch {
    private let arguments: DemoArguments

    init(_ arguments: DemoArguments) { self.arguments = arguments }

    /// - Returns: The exit status: 0 if every file is complete at the end.
    func run() -> Int32 {
        let directory = path(NSTemporaryDirectory(), "vitrine-downloads-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(atPath: directory) }
        do {
            let files = try Self.files()
            let server = try FileServer(files, bytesPerSecond: 150_000)
            defer { server.stop() }
            let common = [
                "--auto", "--to", path(directory, "files"), "--state", path(directory, "state"),
            ]
            let first = try start(common + ["--run", "first"] + files.keys.sorted().map(server.address))
            var received = 0
            while let line = first.line() {
                if line == "half" {
                    kill(first.process.processIdentifier, SIGKILL)
                    break
                }
                if line.hasPrefix("received ") { received = Int(line.dropFirst(9)) ?? 0 } else { print(line) }
            }
            first.process.waitUntilExit()
            guard first.process.terminationReason == .uncaughtSignal else { return 1 }
            print("killed the first run after \(received) bytes")
            let shot = arguments["--shot"].map { ["--shot", $0] } ?? []
            let second = try start(common + ["--run", "second"] + shot)
            while let line = second.line() { print(line) }
            second.process.waitUntilExit()
            guard second.process.terminationStatus == 0 else { return 1 }
            return check(files, in: path(directory, "files"), sent: server.bytesSent)
        } catch {
            print("FAILED: \(error)")
            return 1
        }
    }

    private func check(_ files: [String: [UInt8]], in directory: String, sent: Int) -> Int32 {
        for (name, bytes) in files where FileManager.default.contents(atPath: path(directory, name)) != Data(bytes) {
            print("FAILED: \(name) differs from the file on the server")
            return 1
        }
        let size = files.values.reduce(0) { $0 + $1.count }
        print("\(files.count) files are complete: \(size) bytes, for which the server sent \(sent)")
        return 0
    }

    /// Six generated images.
    private static func files() throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for number in 1...6 {
            files["valley-\(number).jpg"] = try PaintedPicture.landscape(40 + number, width: 1440, height: 960).encoded(
                as: .jpeg(quality: 0.9))
        }
        return files
    }

    private struct Run {
        let process: Process
        let output: FileHandle
        private var lines = Lines()

        init(_ process: Process, _ output: FileHandle) { (self.process, self.output) = (process, output) }

        private final class Lines { var pending = Data() }

        /// Returns the next line; nil after the last one.
        func line() -> String? {
            while true {
                if let end = lines.pending.firstIndex(of: 0x0A) {
                    let line = String(decoding: lines.pending[..<end], as: UTF8.self)
                    lines.pending = Data(lines.pending[(end + 1)...])
                    return line
                }
                let more = output.availableData
                if more.isEmpty { return nil }
                lines.pending += more
            }
        }
    }

    private func start(_ words: [String]) throws -> Run {
        let process = Process(), pipe = Pipe()
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = words
        process.standardOutput = pipe
        try process.run()
        return Run(process, pipe.fileHandleForReading)
    }
}
