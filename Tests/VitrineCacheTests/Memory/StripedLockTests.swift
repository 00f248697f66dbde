import Dispatch
import TestSupport
import Testing
import VitrineCache

struct StripedLockTests {
    @Test(arguments: [1, 2, 3, 8, 100])
    func whoChangesIsAloneAndWhoReadsSeesWholeStates(stripes: Int) {
        let lock = Held(stripes)
        let wrong = Counter()
        DispatchQueue.concurrentPerform(iterations: 6) { thread in
            for _ in 0..<5000 {
                if thread < 2 {
                    lock.change()
                } else if !lock.isWhole {
                    wrong.add(1)
                }
            }
        }
        #expect(wrong.value == 0)
        #expect(lock.changes == 10_000)
        #expect(lock.readings == 20_000)
    }

    @Test func hasAPowerOfTwoOfStripesAndAtMostEight() {
        let sizes = [0, 1, 2, 3, 5, 8, 9, 64].map { Held($0).bytes / 128 }
        #expect(sizes == [1, 1, 2, 4, 8, 8, 8, 8])
    }

    @Test func tellsTheProcessor() {
        #expect(CurrentProcessor.limit >= 1)
        #expect(CurrentProcessor().number >= 0)
    }
}

/// A lock in a place of its own, with two numbers that are to be equal.
private final class Held: Sendable {
    private let lock: StripedLock<[Int], Int>

    init(_ stripes: Int) { lock = StripedLock([0, 0], counts: 0, stripes: stripes) }

    func change() {
        lock.withLock { state in
            state[0] += 1
            state[1] += 1
        }
    }

    var isWhole: Bool {
        lock.withSharedLock { state, counts in
            counts += 1
            return state[0] == state[1]
        }
    }

    var changes: Int { lock.withSharedLock { state, _ in state[0] } }
    var readings: Int { lock.withLock { _, counts in counts.reduce(0, +) } }
    var bytes: Int { lock.bytes }
}
