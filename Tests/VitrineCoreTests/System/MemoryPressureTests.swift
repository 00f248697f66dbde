import TestSupport
import Testing
import VitrineCore

struct MemoryPressureTests {
    /// Reports when the test says so.
    private final class Source: MemoryPressureSource {
        let isAvailable = true
        let report = Locked<(@Sendable (MemoryPressure.Level) -> Void)?>(nil)
        let starts = Counter(), stops = Counter()

        func start(_ report: @escaping @Sendable (MemoryPressure.Level) -> Void) {
            starts.add(1)
            self.report.withLock { $0 = report }
        }

        func stop() { stops.add(1) }
    }

    @Test func reportsReachAllSubscribersInOrder() {
        let pressure = MemoryPressure()
        let seen = Recorder<String>()
        let first = pressure.subscribe { seen.add("first \($0)") }
        let second = pressure.subscribe { seen.add("second \($0)") }
        pressure.send(.warning)
        first.cancel()
        pressure.send(.critical)
        #expect(seen.all == ["first warning", "second warning", "second critical"])
        withExtendedLifetime(second) {}
        #expect(!pressure.isAvailable)
    }

    @Test func droppedSubscriptionsEnd() {
        let pressure = MemoryPressure()
        let seen = Recorder<MemoryPressure.Level>()
        _ = pressure.subscribe { seen.add($0) }
        pressure.send(.warning)
        #expect(seen.all.isEmpty)
    }

    @Test func sourceStartsOnceAndStopsAtTheEnd() {
        let source = Source()
        let seen = Recorder<MemoryPressure.Level>()
        do {
            let pressure = MemoryPressure(source: source)
            #expect(pressure.isAvailable)
            #expect(source.starts.value == 0)
            let subscriptions = [pressure.subscribe { seen.add($0) }, pressure.subscribe { seen.add($0) }]
            #expect(source.starts.value == 1)
            source.report.withLock { $0 }?(.critical)
            withExtendedLifetime(subscriptions) {}
        }
        #expect(seen.all == [.critical, .critical])
        #expect(source.stops.value == 1)
    }

    #if !canImport(Darwin)
    @Test func missingFilesMeanSilenceAndAreNotWrittenTo() throws {
        let directory = try TemporaryDirectory()
        try directory.write("not the kernel's", to: "memory.pressure")
        let source = SystemMemoryPressure(pressureFile: directory.file("absent"), groups: [directory.path])
        #expect(!source.isAvailable)
        source.start { _ in }
        source.stop()
        #expect(directory.read("memory.pressure") == "not the kernel's")
    }

    @Test func groupEventsTellHowBadItIs() {
        func events(_ text: String) -> GroupMemoryEvents { GroupMemoryEvents(Array(text.utf8)) }
        let before = events("low 0\nhigh 3\nmax 1\noom 0\noom_kill 0\n")
        #expect(before.high == 3 && before.limit == 1)
        #expect(before.level(since: before) == nil)
        #expect(events("low 9\nhigh 4\nmax 1\noom 0\noom_kill 0\n").level(since: before) == .warning)
        #expect(events("low 0\nhigh 4\nmax 1\noom 0\noom_kill 1\n").level(since: before) == .critical)
        #expect(events("nonsense\nhigh -1\nmax 99999999999999999999\n") == events(""))
    }

    @Test func systemsSourceStartsAndStopsItsThread() {
        for _ in 0..<5 {
            let source = SystemMemoryPressure()
            source.start { _ in }
            source.stop()
            source.stop()
        }
    }
    #endif
}
