import Synchronization
import TestSupport
import Testing
import VitrineCore

struct SingleFlightTests {
    private typealias Flights = SingleFlight<CacheKey, Int>
    private struct Failure: Error {}

    /// A run that the test ends itself, and what its subscribers got.
    private final class Runs: Sendable {
        let flights = Flights()
        let started = Recorder<Flight<CacheKey, Int>>()
        let results = Recorder<String>()

        @discardableResult
        func join(
            _ name: String, _ key: CacheKey = "key", _ priority: RequestPriority = .normal
        ) -> FlightSubscription<CacheKey, Int> {
            flights.join(key, priority: priority) { [started] in started.add($0) } deliver: { [results] result in
                switch result {
                case .success(let value): results.add("\(name): \(value)")
                case .failure(let error): results.add("\(name): \(error is CancellationError ? "cancelled" : "failed")")
                }
            }
        }
    }

    @Test func oneRunServesAllSubscribersInOrderOnce() {
        let runs = Runs()
        for name in ["a", "b", "c"] { runs.join(name) }
        #expect(runs.started.all.count == 1)
        #expect(runs.flights.subscriberCount(for: "key") == 3)
        runs.started.all[0].finish(.success(1))
        runs.started.all[0].finish(.success(2))
        #expect(runs.results.all == ["a: 1", "b: 1", "c: 1"])
        #expect(runs.flights.count == 0)
        runs.join("d")
        #expect(runs.started.all.count == 2)
    }

    @Test func differentKeysRunSeparately() {
        let runs = Runs()
        runs.join("a", "one")
        runs.join("b", "two")
        #expect(runs.started.all.map(\.key) == ["one", "two"])
        runs.started.all[1].finish(.failure(Failure()))
        #expect(runs.results.all == ["b: failed"])
    }

    @Test func priorityIsTheHighestOnJoinChangeAndLeave() {
        let runs = Runs()
        let seen = Recorder<RequestPriority>()
        let low = runs.join("low", "key", .low)
        runs.started.all[0].priority.observe { seen.add($0) }
        let high = runs.join("high", "key", .high)
        #expect(runs.flights.priority(for: "key") == .high)
        low.setPriority(.veryHigh)
        high.setPriority(.veryLow)
        low.setPriority(.normal)
        low.leave()
        #expect(seen.all == [.low, .high, .veryHigh, .normal, .veryLow])
        #expect(runs.results.all == ["low: cancelled"])
    }

    @Test func leavingDisturbsNobodyAndTheLastOneCancels() {
        let runs = Runs()
        let a = runs.join("a"), b = runs.join("b")
        a.leave()
        a.leave()
        #expect(runs.results.all == ["a: cancelled"])
        #expect(!runs.started.all[0].cancellation.isCancelled)
        b.leave()
        #expect(runs.started.all[0].cancellation.isCancelled)
        #expect(runs.results.all == ["a: cancelled", "b: cancelled"])
        runs.started.all[0].finish(.success(1))
        #expect(runs.results.all.count == 2)
    }

    @Test func joiningACancelledKeyStartsAFreshRun() {
        let runs = Runs()
        runs.join("a").leave()
        let again = runs.join("b")
        #expect(runs.started.all.count == 2)
        // The old run ends late: it is not the new one's result.
        runs.started.all[0].finish(.success(1))
        #expect(runs.results.all == ["a: cancelled"])
        runs.started.all[1].finish(.success(2))
        #expect(runs.results.all == ["a: cancelled", "b: 2"])
        again.leave()
        #expect(runs.results.all.count == 2)
    }

    @Test func joiningFromTheCancellationHandlerStartsAFreshRun() {
        let runs = Runs()
        let a = runs.join("a")
        runs.started.all[0].cancellation.onCancel { runs.join("b") }
        a.leave()
        #expect(runs.started.all.count == 2)
        runs.started.all[1].finish(.success(2))
        #expect(runs.results.all == ["a: cancelled", "b: 2"])
    }

    @Test func awaitingCallersShareOneOperation() async throws {
        let flights = Flights()
        let gate = Gate()
        let runs = Counter()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    try await flights.value(for: "key") { _ in
                        await gate.wait()
                        return runs.add(1)
                    }
                }
            }
            while flights.subscriberCount(for: "key") < 10 { await Task.yield() }
            gate.open()
            for try await value in group { #expect(value == 1) }
        }
        #expect(flights.count == 0)
    }

    @Test func cancelledCallerGetsOutAtOnceAndTheWorkGoesOnForTheOther() async throws {
        let flights = Flights()
        let gate = Gate()
        let operation: @Sendable (Flight<CacheKey, Int>) async throws -> Int = { _ in
            await gate.wait()
            return 5
        }
        let first = Task { try await flights.value(for: "key", operation: operation) }
        let second = Task { try await flights.value(for: "key", operation: operation) }
        while flights.subscriberCount(for: "key") < 2 { await Task.yield() }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.open()
        #expect(try await second.value == 5)
    }

    @Test func lastCallerCancelsTheOperationsTask() async {
        let flights = Flights()
        let started = Gate(), stopped = Gate()
        let task = Task {
            try await flights.value(for: "key") { _ in
                await withTaskCancellationHandler {
                    started.open()
                    await stopped.wait()
                } onCancel: {
                    stopped.open()
                }
                return 0
            }
        }
        await started.wait()
        task.cancel()
        await stopped.wait()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func waitingWorkFollowsItsMostUrgentCaller() async throws {
        let flights = Flights()
        let queue = WorkQueue()
        queue.suspend()
        let source = PrioritySource(.low)
        let task = Task {
            try await flights.value(for: "key", following: source) { flight in
                try await queue.run(following: flight.priority) { 3 }
            }
        }
        while queue.queuedCount(at: .low) == 0 { await Task.yield() }
        let urgent = flights.join("key", priority: .veryHigh) { _ in } deliver: { _ in }
        // Followed from a moment after the work is in line.
        while queue.queuedCount(at: .veryHigh) == 0 { await Task.yield() }
        urgent.leave()
        while queue.queuedCount(at: .low) == 0 { await Task.yield() }
        source.value = .normal
        while queue.queuedCount(at: .normal) == 0 { await Task.yield() }
        queue.resume()
        #expect(try await task.value == 3)
    }

    @Test func aCallerLeavesAtItsDeadlineAndTheLastOneCancels() async throws {
        let flights = Flights()
        let gate = Gate()
        let patient = Task {
            try await flights.value(for: "key") { _ in
                await gate.wait()
                return 5
            }
        }
        while flights.subscriberCount(for: "key") == 0 { await Task.yield() }
        let timeout = await #expect(throws: FlightTimeout<CacheKey>.self) {
            try await flights.value(for: "key", deadline: .now) { _ in 6 }
        }
        #expect(timeout?.key == "key")
        #expect(flights.subscriberCount(for: "key") == 1)
        gate.open()
        #expect(try await patient.value == 5)
        // The time may pass before the work starts.
        let started = Counter(), stopped = Counter()
        await #expect(throws: FlightTimeout<CacheKey>.self) {
            try await flights.value(for: "other", deadline: .now) { _ in
                let stop = Gate()
                _ = started.add(1)
                await withTaskCancellationHandler { await stop.wait() } onCancel: { stop.open() }
                return stopped.add(1)
            }
        }
        #expect(flights.count == 0)
        while stopped.value < started.value { await Task.yield() }
    }

    @Test func aResultBeforeTheDeadlineIsDelivered() async throws {
        let flights = Flights()
        #expect(try await flights.value(for: "key", deadline: .now + .seconds(3_600)) { _ in 8 } == 8)
    }

    @Test func startedWorkEndsWithoutACaller() async throws {
        let flights = Flights()
        let gate = Gate(), started = Gate(), ended = Gate()
        flights.start("key", priority: .low) { flight in
            #expect(flight.priority.value == .low)
            started.open()
            await gate.wait()
            #expect(!Task.isCancelled)
            ended.open()
            return 9
        }
        await started.wait()
        let caller = Task { try await flights.value(for: "key") { _ in 10 } }
        while flights.subscriberCount(for: "key") < 2 { await Task.yield() }
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(flights.count == 1)
        gate.open()
        await ended.wait()
        while flights.count > 0 { await Task.yield() }
    }

    @Test func cancellingAllEndsEachCallerWithTheError() async {
        let flights = Flights()
        let stopped = Counter()
        let tasks = ["one", "two"].map { key in
            Task {
                try await flights.value(for: CacheKey(key)) { _ in
                    let stop = Gate()
                    await withTaskCancellationHandler { await stop.wait() } onCancel: { stop.open() }
                    return stopped.add(1)
                }
            }
        }
        while flights.count < 2 { await Task.yield() }
        flights.cancelAll(throwing: Failure())
        #expect(flights.count == 0)
        for task in tasks { await #expect(throws: Failure.self) { try await task.value } }
        while stopped.value < 2 { await Task.yield() }
    }

    @Test func everyCallerGetsExactlyOneResultUnderRaces() async {
        let flights = Flights()
        let delivered = Counter(), values = Counter()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    for index in 0..<1000 {
                        let key = CacheKey("\(index % 3)")
                        let subscription = flights.join(key, priority: RequestPriority.allCases[index % 5]) { flight in
                            BlockingExecutor.shared.submit { flight.finish(.success(lane)) }
                        } deliver: { result in
                            delivered.add(1)
                            if case .success = result { values.add(1) }
                        }
                        subscription.setPriority(RequestPriority.allCases[(index + lane) % 5])
                        if (index + lane) % 2 == 0 { subscription.leave() }
                    }
                }
            }
        }
        while flights.count > 0 { await Task.yield() }
        await BlockingExecutor.shared.run {}
        while delivered.value < 4000 { await Task.yield() }
        #expect(delivered.value == 4000)
        #expect(values.value >= 2000)
    }

    @Test func awaitingAndCancellingAtOnceNeverHangs() async {
        let flights = Flights()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<400 {
                group.addTask {
                    let task = Task {
                        try await flights.value(for: CacheKey("\(index % 2)")) { _ in
                            await Task.yield()
                            return index
                        }
                    }
                    if index % 2 == 0 { task.cancel() }
                    _ = await task.result
                }
            }
        }
        #expect(flights.count == 0)
    }
    @Test func errorsOfQueuesAndFlightsDescribeThemselvesInOneLine() async throws {
        for error in [WorkQueueError.full, .timedOut] {
            #expect(ErrorTextRule.violations(of: error, input: "slot").isEmpty)
        }
        let key = "https://example.org/" + String(repeating: "a", count: 500)
        let error = try await #require(throws: FlightTimeout<String>.self) {
            _ = try await SingleFlight<String, Int>().value(for: key, deadline: .now) { _ in
                try await Task.sleep(for: .seconds(60))
                return 1
            }
        }
        #expect(ErrorTextRule.violations(of: error, input: "example.org").isEmpty)
        #expect(error.key == key && error.description.hasPrefix("https://example.org/aaa"))
        #expect(error.description.count < 260)
    }
}
