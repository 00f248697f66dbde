// Feeds mutated bytes to every parser that runs in a program's own process. `Scripts/fuzz` drives it.
import Foundation
import TestSupport
import VitrineImaging

@main
enum VitrineFuzz {
    static func main() {
        VitrineWorkerMain.runIfRequested()
        let words = Array(CommandLine.arguments.dropFirst())
        switch (words.first, words.count) {
        case ("list", 1): for target in FuzzTargets.all { print(target.name) }
        case ("run", 4...5):
            guard let target = target(words[1]), let runs = Int(words[2]), let seed = UInt64(words[3]) else { usage() }
            FuzzRun(target, seed: seed, record: words.count == 5 ? words[4] : nil).run(runs)
        case ("replay", 3):
            guard let target = target(words[1]), let bytes = contents(words[2]) else { usage() }
            FuzzRun(target, seed: 1, record: nil).replay(FuzzRecord.input(in: bytes) ?? bytes)
        case ("digests", 1): FuzzDigests.print()
        case ("extract", 3):
            guard let bytes = contents(words[1]), let input = FuzzRecord.input(in: bytes),
                FileManager.default.createFile(atPath: words[2], contents: Data(input))
            else { usage() }
        default: usage()
        }
    }

    private static func target(_ name: String) -> FuzzTarget? { FuzzTargets.all.first { $0.name == name } }

    private static func contents(_ path: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path).map { [UInt8]($0) }
    }

    private static func usage() -> Never {
        let text = """
            VitrineFuzz list
            VitrineFuzz run TARGET RUNS SEED [RECORD]   keeps the input at work in RECORD
            VitrineFuzz replay TARGET FILE              a file of bytes, or a RECORD
            VitrineFuzz digests                         of every picture of every seed, to compare two runs
            VitrineFuzz extract RECORD FILE             writes the bytes of a RECORD

            """
        FileHandle.standardError.write(Data(text.utf8))
        exit(64)
    }
}
