import VitrineCore

/// Collects what happened, in order, from any thread.
final class Recorder<Element: Sendable>: Sendable {
    private let state = Locked<[Element]>([])

    func add(_ element: Element) { state.withLock { $0.append(element) } }
    var all: [Element] { state.withLock { $0 } }
}
