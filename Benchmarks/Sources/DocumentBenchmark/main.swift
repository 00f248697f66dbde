// Measures thumbnails of documents: pages a second of processor time and of wall-clock time, helpers included.
//   DocumentBenchmark pdf FILE [ROUNDS]
//   DocumentBenchmark video FILE...
let arguments = CommandLine.arguments.dropFirst()
switch arguments.first {
case "pdf" where arguments.count >= 2:
    let rounds = arguments.dropFirst(2).first.flatMap { Int($0) } ?? 5
    try await PDFBenchmark(path: CommandLine.arguments[2], rounds: rounds).run()
case "video" where arguments.count >= 2:
    try await VideoBenchmark(paths: Array(arguments.dropFirst()), rounds: 5).run()
default:
    print("usage: DocumentBenchmark pdf FILE [ROUNDS] | video FILE...")
}
