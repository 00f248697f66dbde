import Synchronization

/// Collects what happened, in order, from any thread.
final class Recorder<Element: Sendable>: Sendable {
    private let state = Mutex<[Element]>([])

    func add(_ element: Element) { state.withLock { $0.append(element) } }
    var all: [Element] { state.withLock { $0 } }
}
