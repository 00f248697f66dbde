// Measures VitrineModels against Foundation's coders, JSONSerialization, files and GRDB. Contenders run alternately in
// every round; the tables give medians of rounds, processor time of the thread where one thread does the work, and
// ratios to the first contender, round against round.
import Foundation

@main
enum ModelsBenchmark {
    static func main() async throws {
        let words = CommandLine.arguments
        let numbers = words.compactMap { Int($0) }
        switch (words.dropFirst().first, words.count) {
        case ("codec", 4) where numbers.count == 2:
            try await CodecBenchmark(count: numbers[0], rounds: numbers[1]).run()
        case ("migration", 5) where numbers.count == 2:
            try await MigrationBenchmark(directory: words[2], count: numbers[0], rounds: numbers[1]).run()
        case ("store", 5) where numbers.count == 2:
            try await StoreBenchmark(directory: words[2], count: numbers[0], rounds: numbers[1]).run()
        case ("open", 5) where numbers.count == 2:
            try await OpenBenchmark(directory: words[2], count: numbers[0], rounds: numbers[1]).run()
        default:
            print(
                """
                usage: ModelsBenchmark codec RECORDS ROUNDS
                       ModelsBenchmark migration DIRECTORY OBJECTS ROUNDS
                       ModelsBenchmark store DIRECTORY OBJECTS ROUNDS
                       ModelsBenchmark open DIRECTORY OBJECTS ROUNDS
                """)
            exit(64)
        }
    }
}
