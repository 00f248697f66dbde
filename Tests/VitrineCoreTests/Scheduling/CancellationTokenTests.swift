import Synchronization
import TestSupport
import Testing
import VitrineCore

struct CancellationTokenTests {
    @Test func handlersRunOnceInOrderBeforeCancelReturns() {
        let token = CancellationToken()
        let calls = Recorder<Int>()
        for index in 0..<5 { token.onCancel { calls.add(index) } }
        #expect(!token.isCancelled)
        token.cancel()
        token.cancel()
        #expect(token.isCancelled)
        #expect(calls.all == [0, 1, 2, 3, 4])
    }

    @Test func handlerOfACancelledTokenRunsAtOnce() {
        let token = CancellationToken()
        token.cancel()
        let calls = Recorder<Int>()
        let registration = token.register { calls.add(1) }
        #expect(calls.all == [1])
        token.remove(registration)
    }

    @Test func removedHandlerIsReleasedAndNeverRuns() {
        final class Captured: Sendable {}
        weak var captured: Captured?
        let token = CancellationToken()
        let calls = Recorder<Int>()
        let registration: CancellationToken.Registration
        do {
            let object = Captured()
            captured = object
            registration = token.register { calls.add(ObjectIdentifier(object).hashValue) }
        }
        #expect(captured != nil)
        token.remove(registration)
        #expect(captured == nil)
        token.cancel()
        #expect(calls.all.isEmpty)
    }

    @Test func registeringAndCancellingAtOnceCallsEachHandlerOnce() async {
        for _ in 0..<200 {
            let token = CancellationToken()
            let calls = Counter()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask { token.onCancel { calls.add(1) } }
                }
                group.addTask { token.cancel() }
            }
            #expect(calls.value == 4)
        }
    }
}
