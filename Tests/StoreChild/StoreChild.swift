// A process that saves, renames and deletes pictures by a plan, for tests that kill it. It prints the number of each step
// when it is done; the test judges.
import TestSupport
import VitrineImaging
import VitrineStores

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

@main
enum StoreChild {
    static func main() {
        let words = CommandLine.arguments
        guard words.count == 4, let seed = UInt64(words[2]), let first = Int(words[3]) else { exit(64) }
        var configuration = ImageStore.Configuration()
        configuration.thumbnailMaxSize = PixelSize(16)
        let store = ImageStore(.root(words[1]), path: [], configuration: configuration).blocking
        var plan = StorePlan(seed: seed)
        for number in 0... {
            let step = plan.next()
            guard number >= first else { continue }
            do {
                try perform(step, number, store)
            } catch {
                report("error \(error)")
                exit(1)
            }
            report("\(number)")
        }
    }

    private static func perform(_ step: StorePlan.Step, _ number: Int, _ store: ImageStore.Blocking) throws(StoreError) {
        switch step {
        case .save(let name):
            try store.save(Image(size: PixelSize(width: 64, height: 48), color: color(number)), as: name)
        case .rename(let name, let newName):
            // What the plan does not know is whether there is one.
            guard store.exists(name) else { return }
            try store.rename(name, to: newName, replacing: true)
        case .delete(let name): try store.delete(name)
        }
    }

    /// A colour for each of 65,536 steps.
    private static func color(_ number: Int) -> Color {
        Color(red: UInt8(number & 255), green: UInt8(number >> 8 & 255), blue: 77)
    }

    /// Writes one line with a single call, so that a reader never sees half of one.
    private static func report(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
    }
}
