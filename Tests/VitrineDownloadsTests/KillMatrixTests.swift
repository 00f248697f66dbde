#if os(Linux)
import Foundation
import TestSupport
import Testing
import VitrineCore
import VitrineDownloads

/// Programs and agents are killed in the middle of downloads from servers of all kinds, which cut connections and
/// replace files meanwhile, and clocks are set to other years. Every file that appears is the source as it was at one
/// time, and nothing else is left.
@Suite struct KillMatrixTests {
    /// Who is killed.
    enum Victim: CaseIterable, CustomTestStringConvertible {
        case nobody, client, agent, both
        /// A program that loads by itself.
        case program

        var testDescription: String { "\(self)" }
    }

    /// How a server tells versions apart.
    enum Server: CaseIterable {
        case strongTag, date, weakTag, nothing
        /// It sends everything, whatever it is asked for.
        case noRanges
    }

    private static let isReplaced = [false, true]
    /// How often each case is tried, at other moments.
    private static let repetitions = 2

    @Test(arguments: Victim.allCases) func filesAreWholeAndNothingIsLeft(victim: Victim) async throws {
        try await offPool {
            var random = SeededGenerator(UInt64(Victim.allCases.firstIndex(of: victim) ?? 0) + 1)
            let fixture = try AgentFixture()
            var number = 0
            for repetition in 0..<Self.repetitions {
                for server in Server.allCases {
                    for replaced in Self.isReplaced {
                        number += 1
                        let round = Round(
                            fixture, victim, server, replaced: replaced, clocksJump: repetition % 2 == 1, number,
                            &random)
                        try round.run()
                    }
                }
            }
            // Only the files themselves, each with its bytes.
            #expect(fixture.files.names == (1...number).map { "\($0)" }.sorted())
        }
    }

    private struct Round: CustomStringConvertible {
        private struct Plan {
            var site: FileSite
            /// How many bytes a reply brings before it is cut; nil for all.
            var size: Int?
        }

        let fixture: AgentFixture
        let victim: Victim
        let server: Server
        let isReplaced: Bool
        /// Whether the clocks of server and program are set back by years in between.
        let clocksJump: Bool
        let name: String
        /// The file before and after it is replaced.
        let contents: [[UInt8]]
        let size: Int
        /// How many bytes are there at least when somebody is killed.
        let goal: Int

        init(
            _ fixture: AgentFixture, _ victim: Victim, _ server: Server, replaced: Bool, clocksJump: Bool,
            _ number: Int, _ random: inout SeededGenerator
        ) {
            (self.fixture, self.victim, self.server) = (fixture, victim, server)
            isReplaced = replaced
            self.clocksJump = clocksJump
            name = "\(number)"
            let length = Int.random(in: 100_000...400_000, using: &random)
            let bytes = pattern(length)
            contents = [bytes, bytes.map { ~$0 }]
            size = Int.random(in: 70_000..<length, using: &random)
            goal = Int.random(in: 0...size, using: &random)
        }

        var description: String {
            let changes = (isReplaced ? ", replaced" : "") + (clocksJump ? ", other clocks" : "")
            return "\(victim), \(server)\(changes), cut at \(size), killed at \(goal)"
        }

        func run() throws {
            let plan = Locked(Plan(site: site(0), size: size)), barrier = LoopbackServer.Barrier()
            let loopback = try LoopbackServer { request in
                let plan = plan.withLock { $0 }
                // One that knows no parts takes no notice of being asked for one.
                var asked = request
                if server == .noRanges { asked = request.withoutRange }
                return plan.site.reply(to: asked, upTo: plan.size, then: [.wait(barrier), .reset])
            }
            let url = loopback.url("/\(name)").absoluteString
            let words = [fixture.journal.path, fixture.files.path, url]
            let agent = victim == .program ? [] : ["agent=" + fixture.sockets.path]
            var child = try ChildProcess(executable: "DownloadChild", words + agent)
            while let line = child.line(), goal > received(line) { #expect(!line.hasPrefix("error"), "\(line)") }
            let agents = fixture.agents
            #expect(agents.count == (victim == .program ? 0 : 1))
            // Before anybody is killed, as who comes after him may be quick. Till then nobody asks again.
            plan.withLock { plan in
                plan.size = nil
                plan.site = site(isReplaced ? 1 : 0, isLater: true)
            }
            if [.client, .both, .program].contains(victim) { kill(child) }
            if [.agent, .both].contains(victim) { for agent in agents { Foundation.kill(agent, SIGKILL) } }
            barrier.open()
            if [.client, .both, .program].contains(victim) {
                let clock = clocksJump ? ["clock=-\(6 * 365 * 86_400)"] : []
                child = try ChildProcess(executable: "DownloadChild", words + agent + clock)
            }
            var last = ""
            while let line = child.line() { last = line }
            #expect(child.wait() == .exit(0) && last == "file " + fixture.files.file(name), "\(self): \(last)")
            #expect(fixture.bytes(name) == contents[isReplaced ? 1 : 0], "\(self)")
            #expect(fixture.files.names.allSatisfy { !$0.hasPrefix(".") }, "\(self)")
            if server == .strongTag, !isReplaced, goal > 0 {
                // It was gone on with; a program that came after the end has asked for all of it again.
                #expect(loopback.requests.dropFirst().first?.header("Range") != nil, "\(self)")
            }
        }

        private func kill(_ child: ChildProcess) {
            child.kill()
            while child.line() != nil {}
            #expect(child.wait() == .signal(SIGKILL))
        }

        private func received(_ line: String) -> Int {
            line.hasPrefix("received ") ? Int(line.dropFirst(9)) ?? 0 : line.hasPrefix("started") ? 0 : -1
        }

        private func site(_ version: Int, isLater: Bool = false) -> FileSite {
            var site = FileSite(contents[version])
            switch server {
            case .strongTag: site.tag = "\"v\(version)\""
            case .weakTag: site.tag = "W/\"v\(version)\""
            case .noRanges: site.fields = ["Accept-Ranges: none"]
            case .nothing: site.tag = nil
            case .date:
                site.tag = nil
                let year = isLater && clocksJump ? 2020 : 2026
                site.fields = [
                    "Last-Modified: Tue, 0\(version + 1) Sep 2026 10:00:00 GMT",
                    "Date: Tue, 22 Sep \(year) 10:00:00 GMT",
                ]
            }
            return site
        }
    }
}

extension LoopbackServer.Request {
    /// The same, for all of the file.
    fileprivate var withoutRange: LoopbackServer.Request {
        LoopbackServer.Request(
            method: method, target: target, lines: lines.filter { !$0.lowercased().contains("range:") }, body: body,
            connection: connection)
    }
}
#endif
