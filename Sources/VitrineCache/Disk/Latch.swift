import VitrineCore

/// A value that one thread waits for and another one gives.
///
/// Unchecked: a lock type. `value` is touched under `monitor` only.
final class Latch<Value: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private var value: Value?

    func open(_ value: Value) {
        monitor.lock()
        self.value = value
        monitor.unlock()
        monitor.broadcast()
    }

    /// Blocks until there is a value.
    func wait() -> Value {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let value { return value }
            monitor.wait()
        }
    }
}
