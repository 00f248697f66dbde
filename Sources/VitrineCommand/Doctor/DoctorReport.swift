import ArgumentParser
import VitrineCore
import VitrineDatabase
import VitrineDownloads
import VitrineImaging
import VitrineNetwork
import VitrinePipeline
import VitrineWebPages

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The findings of `vitrine doctor`. The names of the properties are the keys of its JSON.
struct DoctorReport: Encodable {
    /// Something that can be asked for by `--require`.
    enum Part: String, CaseIterable, ExpressibleByArgument {
        case worker, pdf, video, text, agent, browser, network, avif, sandbox
    }

    /// A helper program.
    struct Helper: Encodable {
        let name: String
        /// nil if the program is not installed.
        let path: String?
        /// Whether it starts and answers.
        let works: Bool
        let problem: String?
        let libraries: [LibraryVersion]
        /// nil for programs without a sandbox, and for those that do not work.
        let sandbox: Sandbox?
    }

    struct Sandbox: Encodable {
        let seccomp: Bool
        let landlock: Bool
    }

    struct Place: Encodable {
        let name: String
        let path: String
        let exists: Bool
        let isWritable: Bool
    }

    /// The limits in force for images that this command decodes. Sizes are in bytes, the deadline in seconds.
    struct Limits: Encodable {
        let inputBytes: Int
        let pixels: Int
        let side: Int
        let outputSide: Int
        let deadline: Double
        let workerMemory: Int
        let totalMemory: Int
    }

    let version: String
    let program: String?
    let libraries: [LibraryVersion]
    let formats: [String]
    let helpers: [Helper]
    let sandboxIsRequired: Bool
    let browser: String?
    let agentProcess: Int32?
    let directories: [Place]
    let limits: Limits
    /// Everything that was asked for and is missing.
    let problems: [String]

    /// Examines the system. Starts each installed helper program.
    init(requiring parts: [Part]) async {
        version = HelperVersion.number
        program = HelperProgram.running
        let helpers = await Self.helpers()
        let libraries = Self.libraries()
        let decoder = ImageDecoder()
        formats = ImageFormat.pictures.filter { decoder.canDecode($0) }.map(\.rawValue).sorted()
        browser = RunningBrowsers.installed
        agentProcess = (try? await DownloadAgent().info())?.process
        let directories = Self.directories()
        let limits = ImageLimits.standard
        self.limits = Limits(
            inputBytes: limits.maximumInputBytes, pixels: limits.maximumPixels, side: limits.maximumSide,
            outputSide: limits.maximumOutputSide, deadline: limits.deadline, workerMemory: limits.maximumWorkerMemory,
            totalMemory: WorkerPool.maximumTotalMemory)
        sandboxIsRequired = WorkerPool.requiresCompleteSandbox || parts.contains(.sandbox)
        problems =
            Self.problems(of: helpers, parts, sandboxIsRequired: sandboxIsRequired)
            + Self.problems(of: libraries, parts) + Self.problems(of: directories)
            + Self.problems(ofBrowser: browser, parts)
        (self.helpers, self.libraries, self.directories) = (helpers, libraries, directories)
    }

    private static func libraries() -> [LibraryVersion] {
        var libraries = [LibraryVersion("SQLite", version: Database.libraryVersion)] + Codecs.standard.libraries
        #if os(Linux)
        let curl = CurlLoader.library
        libraries.append(LibraryVersion("libcurl", version: curl.version, problem: curl.problem))
        #endif
        return libraries
    }

    private static func directories() -> [Place] {
        let current = Directories.current
        var places = [("caches", current.caches), ("data", current.data), ("temporary", current.temporary)]
        if let runtime = current.runtime { places.append(("runtime", runtime)) }
        return places.map { name, path in
            // A missing directory is made when needed, inside the first parent that exists.
            var existing = path
            while access(existing, F_OK) != 0, existing != "/", let slash = existing.lastIndex(of: "/") {
                existing = slash == existing.startIndex ? "/" : String(existing[..<slash])
            }
            return Place(
                name: name, path: path, exists: existing == path, isWritable: access(existing, W_OK) == 0)
        }
    }

    // MARK: Helper programs

    private static func helpers() async -> [Helper] {
        await BlockingExecutor(threads: 1, name: "vitrine-doctor").run {
            SourceDetector.helpers.map { helper($0.program, $0) } + [helper("vitrine-agent", nil)]
        }
    }

    /// Examines one helper program. Blocks.
    private static func helper(_ name: String, _ pool: WorkerPool?) -> Helper {
        guard let path = HelperProgram.path(of: name) else {
            return Helper(
                name: name, path: nil, works: false, problem: HelperProgram.advice(for: name), libraries: [],
                sandbox: nil)
        }
        guard let pool else {
            return Helper(name: name, path: path, works: true, problem: nil, libraries: [], sandbox: nil)
        }
        let libraries = HelperVersion.libraries(in: output(of: path) ?? "")
        do throws(ImageError) {
            let sandbox = try pool.check()
            return Helper(
                name: name, path: path, works: true, problem: nil, libraries: libraries,
                sandbox: Sandbox(seccomp: sandbox.contains(.systemCalls), landlock: sandbox.contains(.files)))
        } catch {
            return Helper(
                name: name, path: path, works: false, problem: error.reason, libraries: libraries, sandbox: nil)
        }
    }

    /// Returns the output of a program for `--version`; nil if it cannot be run. Ends it after ten seconds.
    private static func output(of path: String) -> String? {
        // The stream of a tool is its descriptor 3.
        let shell = ["-c", "exec \"$0\" --version >&3", path]
        guard let tool = try? ToolProcess(path: "/bin/sh", arguments: shell, environment: WorkerCommand.environment()) else {
            return nil
        }
        let deadline = ContinuousClock.now + .seconds(10)
        var bytes: [UInt8] = []
        while true {
            do throws(ToolProcess.Failure) {
                try tool.read(into: &bytes, until: deadline, cancellation: CancellationToken())
            } catch {
                if case .ended = error { return String(decoding: bytes, as: UTF8.self) }
                return nil
            }
        }
    }

    // MARK: Problems

    private static func isSet(_ variable: String) -> Bool {
        getenv(variable).map { $0.pointee != 0 } ?? false
    }

    private static func problems(of helpers: [Helper], _ parts: [Part], sandboxIsRequired: Bool) -> [String] {
        var problems: [String] = []
        for (helper, part) in zip(helpers, [Part.worker, .pdf, .video, .text, .agent]) {
            let variable = HelperProgram.variable(for: helper.name)
            let isWanted = parts.contains(part) || isSet(variable)
            if helper.path == nil {
                if isWanted { problems.append("\(helper.name) is not installed: \(helper.problem ?? "")") }
            } else if !helper.works, isWanted || sandboxIsRequired {
                problems.append("\(helper.name) does not work: \(helper.problem ?? "")")
            } else if sandboxIsRequired, let sandbox = helper.sandbox, !(sandbox.seccomp && sandbox.landlock) {
                problems.append("\(helper.name) runs in an incomplete sandbox")
            }
        }
        return problems
    }

    private static func problems(of libraries: [LibraryVersion], _ parts: [Part]) -> [String] {
        let wanted = (parts.contains(.network) ? ["libcurl"] : []) + (parts.contains(.avif) ? ["libavif"] : [])
        return libraries.compactMap { library in
            wanted.contains(library.name) ? library.problem.map { "\(library.name) is missing: \($0)" } : nil
        }
    }

    private static func problems(of directories: [Place]) -> [String] {
        directories.filter { !$0.isWritable }.map { "\($0.path) cannot be written to" }
    }

    private static func problems(ofBrowser browser: String?, _ parts: [Part]) -> [String] {
        guard browser == nil, parts.contains(.browser) || isSet("VITRINE_BROWSER") else { return [] }
        return ["no browser was found: install Chromium, or set VITRINE_BROWSER to the path of one"]
    }

    // MARK: Text

    /// Prints the report for people.
    func print() {
        Output.row("vitrine \(version)  \(program ?? "")")
        Output.row("")
        Output.row("Libraries")
        for library in libraries { row(library.name, library.version ?? "missing: \(library.problem ?? "")") }
        row("formats read", formats.joined(separator: " "))
        Output.row("")
        Output.row("Helper programs")
        for helper in helpers {
            row(helper.name, helper.path ?? "not installed")
            if let problem = helper.problem, helper.path != nil { row("", "does not work: \(problem)") }
            if !helper.libraries.isEmpty {
                row("", helper.libraries.map { "\($0.name) \($0.version ?? "")" }.joined(separator: ", "))
            }
            if let sandbox = helper.sandbox {
                row("", "sandbox: seccomp \(word(sandbox.seccomp)), Landlock \(word(sandbox.landlock))")
            }
        }
        row("browser", browser ?? "not installed")
        row("agent", agentProcess.map { "process \($0)" } ?? "does not run")
        row("complete sandbox", sandboxIsRequired ? "required" : "not required")
        Output.row("")
        Output.row("Directories")
        for place in directories {
            let state = place.isWritable ? (place.exists ? "" : "  (made when needed)") : "  (cannot be written to)"
            row(place.name, place.path + state)
        }
        Output.row("")
        Output.row("Limits")
        let megapixels = (Double(limits.pixels) / 1e6).formatted("%.4g")
        row("input", "\(ByteCount(limits.inputBytes)), \(megapixels) megapixels, sides of \(limits.side) pixels")
        row("output", "sides of \(limits.outputSide) pixels")
        row("time", "\(limits.deadline.formatted("%.4g")) seconds for an image")
        row("memory", "\(ByteCount(limits.workerMemory)) for a helper, \(ByteCount(limits.totalMemory)) for all")
        Output.row("")
        Output.row(verdict)
        for problem in problems { Diagnostics.write("vitrine: \(problem)") }
    }

    /// The findings in one sentence.
    private var verdict: String {
        if !problems.isEmpty {
            return problems.count == 1 ? "There is a problem." : "There are \(problems.count) problems."
        }
        let missing = helpers.filter { $0.path == nil }.map(\.name) + (browser == nil ? ["a browser"] : [])
        let broken = helpers.filter { $0.path != nil && !$0.works }.map(\.name)
        if !broken.isEmpty { return "All works but for \(broken.joined(separator: ", "))." }
        guard !missing.isEmpty else { return "All works." }
        return "All works that is installed; not installed: \(missing.joined(separator: ", "))."
    }

    private func word(_ value: Bool) -> String { value ? "on" : "off" }

    private func row(_ name: String, _ value: String) {
        Output.entry("  " + name, value, at: 20)
    }
}
