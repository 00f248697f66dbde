// A process that uses a store, for tests that watch it from outside. It prints what it did; the test judges.
import TestSupport
import VitrineCore
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
        guard words.count >= 3 else { exit(64) }
        var configuration = ImageStore.Configuration()
        configuration.thumbnailMaxSize = PixelSize(16)
        let store = ImageStore(.root(words[2]), path: [], configuration: configuration).blocking
        let numbers = words.dropFirst(3).compactMap { Int($0) }
        switch (words[1], numbers.count) {
        case ("plan", 2): follow(numbers[0], from: numbers[1], store)
        case ("share", 2): share(numbers[0], steps: numbers[1], store)
        case ("group", 1): saveGroup(numbers[0], in: words[2])
        case ("remove-values", 1): GroupRemover.run(words[2], numbers[0])
        case ("fill", 0): Filling(words[2], store).run()
        case ("attempt", 0): Attempts(words[2], store).run()
        case ("names", 0): report("names \((try? store.names.count) ?? -1)")
        case ("hold", 0): Saving(words[2]).hold()
        case ("groups", 1): Saving(words[2]).saveGroups(of: numbers[0])
        case ("scarce", 0): Saving(words[2]).saveWithoutDescriptors()
        case ("change", 0): Saving(words[2]).change()
        case ("record", 1): Saving(words[2]).record(saves: numbers[0])
        default: exit(64)
        }
    }

    /// Follows a plan until it is killed, and tells the number of each step when it is done.
    private static func follow(_ seed: Int, from first: Int, _ store: ImageStore.Blocking) {
        var plan = StorePlan(seed: UInt64(seed))
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

    /// Follows a plan in a store in which others do as well, and tells what failed that should not.
    private static func share(_ seed: Int, steps: Int, _ store: ImageStore.Blocking) {
        var plan = StorePlan(seed: UInt64(seed))
        var lost = 0
        for number in 0..<steps {
            do throws(StoreError) {
                try perform(plan.next(), seed << 10 | number, store)
            } catch .notFound {
                // Another process renamed or deleted it since it was looked for.
                lost += 1
            } catch {
                report("error \(error)")
            }
        }
        report("lost \(lost)")
    }

    /// Saves many files by one call.
    private static func saveGroup(_ count: Int, in directory: String) {
        do throws(StoreError) {
            let files = (0..<count).map { (name: "\($0)", bytes: [UInt8(truncatingIfNeeded: $0)]) }
            try FileStore(.root(directory), path: []).blocking.save(files)
            report("group done")
        } catch {
            report("group \(kind(error))")
        }
    }

    private static func perform(_ step: StorePlan.Step, _ number: Int, _ store: ImageStore.Blocking) throws(StoreError) {
        switch step {
        case .save(let name): try store.save(picture(number), as: name)
        case .rename(let name, let newName):
            // What the plan does not know is whether there is one.
            guard store.exists(name) else { return }
            try store.rename(name, to: newName, replacing: true)
        case .delete(let name): try store.delete(name)
        }
    }

    /// A picture whose colour tells its number, up to 65,535.
    static func picture(_ number: Int, side: Int = 64) -> PixelImage {
        let color = PixelColor(red: UInt8(number & 255), green: UInt8(number >> 8 & 255), blue: 77)
        return PixelImage(size: PixelSize(width: side, height: side * 3 / 4), color: color)
    }

    /// Writes one line with a single call, so that a reader never sees half of one.
    static func report(_ line: String, to file: Int32 = 1) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    }

    /// What an error is called in reports.
    static func kind(_ error: StoreError) -> String {
        switch error {
        case .invalidName: "invalidName"
        case .notFound: "notFound"
        case .alreadyExists: "alreadyExists"
        case .image: "image"
        case .file(.noSpace): "noSpace"
        case .file(.notPermitted): "notPermitted"
        case .file(.alreadyExists): "fileInTheWay"
        case .file(let error): "file:\(error)"
        case .cancelled: "cancelled"
        case .notDurable: "notDurable"
        case .notWatched: "notWatched"
        case .invalidData: "invalidData"
        case .notEncodable: "notEncodable"
        case .database: "database"
        }
    }
}
