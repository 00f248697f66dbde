import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDatabase

@Suite struct ProcessLockTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Whether somebody has the lock, as the file tells.
    private var isHeld: Bool {
        let file = open(directory.file("lock"), O_RDWR | O_CLOEXEC)
        defer {
            // Not by the closing alone: a child that is being started has a copy for a moment.
            flock(file, LOCK_UN)
            close(file)
        }
        return flock(file, LOCK_EX | LOCK_NB) != 0
    }

    @Test func oneHolderAtATime() throws {
        let one = try ProcessLock(directory: directory.path), two = try ProcessLock(directory: directory.path)
        try one.acquire()
        #expect(isHeld)
        one.release()
        #expect(!isHeld)
        try two.acquire()
        #expect(isHeld)
        two.release()
    }

    @Test func everyoneHasTheLockInTheOrderOfAsking() async throws {
        let path = directory.path
        let executor = BlockingExecutor(threads: 4)
        let order = Recorder<Int>()
        let first = try ProcessLock(directory: path)
        try first.acquire()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...3 {
                let drawn = first.nextTicket
                group.addTask {
                    try await executor.run {
                        let lock = try ProcessLock(directory: path)
                        try lock.acquire()
                        order.add(number)
                        lock.release()
                    }
                }
                // Whoever has drawn a ticket has its place.
                while first.nextTicket == drawn { await Task.yield() }
            }
            // Who releases and asks again at once comes after all who wait.
            first.release()
            try await executor.run { try first.acquire() }
            order.add(0)
            first.release()
            try await group.waitForAll()
        }
        #expect(order.all == [1, 2, 3, 0])
    }

    @Test func manyHoldersNeverMeet() async throws {
        let path = directory.path
        let executor = BlockingExecutor(threads: 4)
        let inside = Counter(), total = Counter()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await executor.run {
                        let lock = try ProcessLock(directory: path)
                        for _ in 0..<500 {
                            try lock.acquire()
                            #expect(inside.add(1) == 1)
                            total.add(1)
                            inside.add(-1)
                            lock.release()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(total.value == 2000)
    }

    @Test func whoDiesInTheQueueHoldsNobodyUp() async throws {
        let holder = try ProcessLock(directory: directory.path)
        try holder.acquire()
        #expect(isHeld)
        let next = try ProcessLock(directory: directory.path)
        let executor = BlockingExecutor(threads: 1)
        let drawn = holder.nextTicket
        let task = Task { try await executor.run { try next.acquire() } }
        while holder.nextTicket == drawn { await Task.yield() }
        holder.release()
        try await task.value
        next.release()
    }

    @Test func nonsenseInTheFilesIsNoHindrance() throws {
        try Data("no number at all".utf8).write(to: URL(filePath: directory.file("turn")))
        let lock = try ProcessLock(directory: directory.path)
        try lock.acquire()
        lock.release()
        #expect(!isHeld)
        try lock.acquire()
        lock.release()
    }

    @Test func aDyingHolderGivesTheLockUp() throws {
        let lock = try ProcessLock(directory: directory.path)
        do {
            let dying = try ProcessLock(directory: directory.path)
            try dying.acquire()
            #expect(isHeld)
        }
        try waitUntil("the lock is free") { !isHeld }
        try lock.acquire()
        lock.release()
    }

    @Test func aReplacedDirectoryIsNoticed() throws {
        let lock = try ProcessLock(directory: directory.path)
        #expect(lock.isCurrent)
        try FileManager.default.removeItem(atPath: directory.file("lock"))
        #expect(!lock.isCurrent)
        _ = try ProcessLock(directory: directory.path)
        #expect(!lock.isCurrent)
    }
}
