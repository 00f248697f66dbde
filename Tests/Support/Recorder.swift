internal import VitrineCore

/// Collects what happened, in order, from any thread.
package final class Recorder<Element: Sendable>: Sendable {
    private let state = Locked<[Element]>([])

    package init() {}

    package func add(_ element: Element) { state.withLock { $0.append(element) } }
    package var all: [Element] { state.withLock { $0 } }
}
