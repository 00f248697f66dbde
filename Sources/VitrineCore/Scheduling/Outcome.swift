/// A value that one thread sets once and others block for.
///
/// Unchecked: a lock type. The value is touched under `monitor` only.
package final class Outcome<Value: Sendable>: @unchecked Sendable {
    private let monitor = Monitor()
    private var value: Value?

    /// One without a value yet.
    package init() {}

    /// Sets the value, if there is none yet, and wakes all who wait.
    package func set(_ value: Value) {
        monitor.lock()
        if self.value == nil { self.value = value }
        monitor.unlock()
        monitor.broadcast()
    }

    /// The value, once there is one. Blocks.
    package func wait() -> Value {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let value { return value }
            monitor.wait()
        }
    }
}
