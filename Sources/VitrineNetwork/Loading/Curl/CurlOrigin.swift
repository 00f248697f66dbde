#if os(Linux)
import DequeModule
import VitrineCore

/// Those who want something of one site: as many as it may have connections, the others in line, the most urgent
/// first. Belongs to the loop's thread.
final class CurlOrigin {
    let name: String
    var active = 0
    /// Whether the site takes several requests over one connection.
    var isMultiplexed = false
    private var lines: [Deque<CurlTransfer>] = Array(repeating: [], count: Priority.allCases.count)
    private(set) var waiting = 0

    init(_ name: String) { self.name = name }

    var isIdle: Bool { active == 0 && waiting == 0 }

    func add(_ transfer: CurlTransfer) {
        lines[transfer.request.priority.rawValue].append(transfer)
        waiting += 1
    }

    /// Takes the next out of the line. Those that were cancelled meanwhile are for the caller to skip.
    func next() -> CurlTransfer? {
        guard waiting > 0, let index = lines.lastIndex(where: { !$0.isEmpty }) else { return nil }
        waiting -= 1
        return lines[index].removeFirst()
    }

    /// Takes one out of the line who does not want any more.
    func remove(_ transfer: CurlTransfer) {
        let line = transfer.request.priority.rawValue
        guard let index = lines[line].firstIndex(where: { $0 === transfer }) else { return }
        lines[line].remove(at: index)
        waiting -= 1
    }
}
#endif
