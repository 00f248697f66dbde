import Foundation
import TestSupport
import Testing
import VitrineImaging

/// Helpers are ended and reaped by the process that started them, as process 1 of a container may never reap.
@Suite struct HelperEndTests {
    /// What process 1 found after the runs.
    private func processOne(_ count: Int, _ signal: Int32, _ words: [String]) throws -> String? {
        let child = try ChildProcess(
            executable: "WorkerTestHost", ["init", "\(count)", "\(signal)"] + words, wrapper: Namespace.asProcessOne)
        return child.line()
    }

    @Test(.enabled(if: Namespace.hasProcesses, "needs process namespaces"))
    func exitingProcessesLeaveNoZombies() async throws {
        let line = try await offPool { try processOne(10 * Rounds.factor, 0, [WorkerFixture.host, "exit"]) }
        #expect(line == "zombies 0")
    }

    @Test(
        .enabled(if: Namespace.hasProcesses, "needs process namespaces"),
        arguments: [SIGHUP, SIGINT, SIGPIPE, SIGTERM])
    func signalledProcessesLeaveNoZombies(_ signal: Int32) async throws {
        // InitProcess also checks that it is the signal that ended each run.
        let line = try await offPool { try processOne(3 * Rounds.factor, signal, [WorkerFixture.host, "wait"]) }
        #expect(line == "zombies 0")
    }

    @Test(.enabled(if: Namespace.hasProcesses, "needs process namespaces"))
    func processOneOfTheTestSeesZombies() async throws {
        // Killed outright, a process can end nobody: its two workers are left.
        let line = try await offPool { try processOne(1, SIGKILL, [WorkerFixture.host, "wait"]) }
        #expect(line == "zombies 2")
    }
}
