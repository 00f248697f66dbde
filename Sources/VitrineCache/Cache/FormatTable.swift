import VitrineCore

/// The formats a cache knows (R33), the original among them from the start.
package final class FormatTable<Value: CacheableValue>: Sendable {
    private struct State {
        var areas: [FormatName: FormatArea<Value>]
        var order: [FormatName]
        var nextID = 1
    }

    private let state: Locked<State>

    package init(original: FormatArea<Value>) {
        state = Locked(State(areas: [original.format.name: original], order: [original.format.name]))
    }

    /// The area of a name.
    package subscript(name: FormatName) -> FormatArea<Value>? { state.withLock { $0.areas[name] } }

    /// All areas in the order of their registration.
    package var all: [FormatArea<Value>] {
        state.withLock { state in state.order.compactMap { state.areas[$0] } }
    }

    /// Adds an area unless the name is taken.
    ///
    /// - Parameter make: Makes the area for a number. Called under the lock: opens nothing.
    /// - Returns: The new area; nil if the name is taken.
    package func add(_ name: FormatName, make: (Int) -> FormatArea<Value>) -> FormatArea<Value>? {
        state.withLock { state in
            guard state.areas[name] == nil else { return nil }
            let area = make(state.nextID)
            state.nextID += 1
            state.areas[name] = area
            state.order.append(name)
            return area
        }
    }

    /// Forgets an area. The original stays.
    package func remove(_ name: FormatName) -> FormatArea<Value>? {
        guard name != .original else { return nil }
        return state.withLock { state in
            state.order.removeAll { $0 == name }
            return state.areas.removeValue(forKey: name)
        }
    }
}
