import TestSupport
import Testing
import VitrineCore

struct PriorityTests {
    @Test func fiveLevelsAreOrdered() {
        #expect(RequestPriority.allCases == RequestPriority.allCases.sorted())
        #expect(RequestPriority.allCases.count == 5)
        #expect(RequestPriority.veryLow < .low && RequestPriority.high < .veryHigh)
    }

    @Test func observersGetTheValueAtOnceAndEveryChange() {
        let source = PrioritySource(.low)
        let seen = Recorder<RequestPriority>()
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
            let seen = Recorder<RequestPriority>()
            source.observe { seen.add($0) }
            await withTaskGroup(of: Void.self) { group in
                for priority in RequestPriority.allCases { group.addTask { source.value = priority } }
            }
            #expect(seen.all.last == source.value)
        }
    }
}
