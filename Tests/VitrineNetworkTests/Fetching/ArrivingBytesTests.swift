import TestSupport
import Testing
import VitrineNetwork

@Suite struct ArrivingBytesTests {
    @Test func readersThatBeginLateGetAllBytes() async {
        let bytes = ArrivingBytes(limit: 100)
        bytes.begin()
        bytes.append([1, 2])
        let first = await bytes.bytes(after: .init())
        #expect(first?.bytes == [1, 2])
        bytes.append([3])
        bytes.append([4, 5])
        #expect(await bytes.bytes(after: first?.end ?? .init())?.bytes == [3, 4, 5])
        #expect(await bytes.bytes(after: .init())?.bytes == [1, 2, 3, 4, 5])
    }

    @Test func anotherAttemptBeginsAgain() async {
        let bytes = ArrivingBytes(limit: 100)
        bytes.begin()
        bytes.append([1, 2])
        let first = await bytes.bytes(after: .init())
        bytes.begin()
        bytes.append([7])
        let second = await bytes.bytes(after: first?.end ?? .init())
        #expect(second?.bytes == [7])
        #expect(second?.end.attempt != first?.end.attempt)
    }

    @Test func readersWaitForBytesAndForTheEnd() async {
        let bytes = ArrivingBytes(limit: 100)
        async let found = bytes.bytes(after: .init())
        bytes.begin()
        bytes.append([9])
        let end = await found?.end
        #expect(end != nil)
        async let nothing = bytes.bytes(after: end ?? .init())
        bytes.end()
        let last = await nothing
        #expect(last == nil)
        bytes.append([1])
        #expect(await bytes.bytes(after: .init()) == nil)
    }

    @Test func moreBytesThanTheLimitEndTheBytes() async {
        let bytes = ArrivingBytes(limit: 4)
        bytes.begin()
        bytes.append([1, 2, 3])
        bytes.append([4, 5])
        #expect(await bytes.bytes(after: .init()) == nil)
    }

    @Test func cancelledReadersGetNothing() async {
        let bytes = ArrivingBytes(limit: 4)
        let reader = Task { await bytes.bytes(after: .init()) == nil }
        reader.cancel()
        #expect(await reader.value)
    }
}
