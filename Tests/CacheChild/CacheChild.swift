// A process that uses a disk cache, for tests that kill it, let it compete, or take its permissions away. It prints
// what it finds, one `name value` a line; the test judges.
import TestSupport
import VitrineCache
import VitrineCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

@main
enum CacheChild {
    static func main() async {
        var arguments = ChildArguments(CommandLine.arguments.dropFirst())
        switch arguments.text() {
        case "write": Writer.run(&arguments)
        case "write-formats": Writer.runFormats(&arguments)
        case "compete": Competitor.run(&arguments)
        case "fill-disk": DiskFiller.run(&arguments)
        case "read-full": FullDiskReader.run(&arguments)
        #if os(Linux)
        case "read-only-moment": ReadOnlyMoment.run(&arguments)
        #endif
        case "use": Visitor.run(&arguments)
        case "cut-open": OpenFileDamage.run(&arguments, .cut)
        case "flip-open": OpenFileDamage.run(&arguments, .flip)
        case "formats": await FormatUser.run(&arguments)
        case "purge": Purger.run(&arguments)
        case "load-tagged": await TaggedLoader.run(&arguments)
        case let other: ChildArguments.refuse("unknown command \(other)")
        }
    }
}

/// The words of the command line, taken one by one.
struct ChildArguments {
    private var words: ArraySlice<String>

    init(_ words: ArraySlice<String>) { self.words = words }

    var isEmpty: Bool { words.isEmpty }

    mutating func text() -> String {
        guard let word = words.popFirst() else { Self.refuse("an argument is missing") }
        return word
    }

    mutating func number() -> Int {
        let word = text()
        guard let number = Int(word) else { Self.refuse("\(word) is no number") }
        return number
    }

    static func refuse(_ reason: String) -> Never {
        report("error", reason)
        exit(64)
    }
}

/// Writes one line with a single call, so that a reader never sees half of one.
func report(_ name: String, _ value: some CustomStringConvertible) {
    let line = Array("\(name) \(value)\n".utf8)
    _ = line.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

/// Milliseconds of a clock that only goes forward.
func milliseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int(time.tv_sec) * 1000 + Int(time.tv_nsec) / 1_000_000
}

/// The case of an error, without what it carries.
func name(of error: any Error) -> String {
    Mirror(reflecting: error).children.first?.label ?? "\(error)"
}
