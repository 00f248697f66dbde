import Foundation
import VitrineImaging

/// Runs one piece of work per input, a few at a time, and hands the results on in the order of the inputs.
enum Batch {
    /// - Parameters:
    ///   - width: How many at a time. Default: as many as there are processors.
    ///   - showsProgress: Whether a terminal shows how many are done.
    static func run<Input: Sendable, Result: Sendable>(
        _ inputs: [Input],
        width: Int = max(1, ProcessInfo.processInfo.activeProcessorCount),
        showsProgress: Bool = true,
        work: @escaping @Sendable (Int, Input) async -> Result,
        report: (Result) -> Void
    ) async {
        let progress = ProgressBar(total: showsProgress ? inputs.count : 0)
        await withTaskGroup(of: (Int, Result).self) { group in
            var next = 0
            var waiting: [Int: Result] = [:]
            var reported = 0
            func start() {
                guard next < inputs.count else { return }
                let index = next
                next += 1
                group.addTask { (index, await work(index, inputs[index])) }
            }
            for _ in 0..<width { start() }
            for await (index, result) in group {
                start()
                waiting[index] = result
                progress.advance()
                guard waiting[reported] != nil else { continue }
                progress.clear()
                while let ready = waiting.removeValue(forKey: reported) {
                    report(ready)
                    reported += 1
                }
            }
            progress.clear()
        }
    }
}
