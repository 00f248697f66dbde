import ArgumentParser
import VitrineCore

/// `vitrine doctor`: reports the installed parts and their state.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Checks versions, helper programs, codecs, the sandbox, directories and limits.",
        discussion: """
            It starts each helper program once. The exit status is 1 if something is missing that --require or an \
            environment variable asks for, or if a directory cannot be written to.

              vitrine doctor --require worker --require sandbox
            """)

    @Flag(help: "Print a JSON object instead of text.")
    var json = false

    @Option(help: ArgumentHelp("Something that must work; repeatable. (default: nothing)", valueName: "part"))
    var require: [DoctorReport.Part] = []

    func run() async throws {
        let report = await DoctorReport(requiring: require)
        if json {
            Output.json(report)
        } else {
            report.print()
        }
        if !report.problems.isEmpty { throw ExitCode(1) }
    }
}
