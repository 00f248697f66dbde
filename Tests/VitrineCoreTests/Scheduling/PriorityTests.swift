import TestSupport
import Testing
import VitrineCore

struct PriorityTests {
    @Test func fiveLevelsAreOrdered() {
        #expect(Priority.allCases == Priority.allCases.sorted())
        #expect(Priority.allCases.count == 5)
        #expect(Priority.veryLow < .low && Priority.high < .veryHigh)
    }

    @Test func observersGetTheValueAtOnceAndEveryChange() {
        let source = PrioritySource(.low)
        let seen = Recorder<Priority>()
        let registration = source.observe { seen.add($0) }
        source.value = .high
        source.value = .high
        source.remove(registration)
        source.value = .veryHigh
        #expect(seen.all == [.low, .high])
    }

    @Test func lastCallCarriesTheLastValueWhateverTheRace() async {
        for _ in 0..<300 {
            let source = PrioritySource(.normal)
            let seen = Recorder<Priority>()
            source.observe { seen.add($0) }
            await withTaskGroup(of: Void.self) { group in
                for priority in Priority.allCases { group.addTask { source.value = priority } }
            }
            #expect(seen.all.last == source.value)
        }
    }
}
