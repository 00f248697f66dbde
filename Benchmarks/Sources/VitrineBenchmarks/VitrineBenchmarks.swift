import ArgumentParser

/// Measures Vitrine and its peers alternately, one process per measurement, and prints Markdown tables.
@main
struct VitrineBenchmarks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vitrine-benchmarks",
        subcommands: [
            ImagingBenchmark.self, QualityBenchmark.self, CancellationBenchmark.self, IsolationBenchmark.self,
            MeasuredChild.self,
        ],
        defaultSubcommand: ImagingBenchmark.self)
}
