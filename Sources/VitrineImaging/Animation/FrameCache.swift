import VitrineCore

/// Bounds the bytes of frames that all animations of the process keep.
package final class FrameBudget: Sendable {
    /// The budget of all animations that name no other.
    package static let shared = FrameBudget(capacity: 128 << 20)

    private struct State {
        var capacity: Int
        var reserved = 0
    }

    private let state: Locked<State>

    package init(capacity: Int) { state = Locked(State(capacity: capacity)) }

    /// The most bytes. A smaller value applies to later reservations.
    package var capacity: Int {
        get { state.withLock { $0.capacity } }
        set { state.withLock { $0.capacity = newValue } }
    }

    /// The bytes that animations have reserved.
    package var reserved: Int { state.withLock { $0.reserved } }

    /// Reserves bytes, unless fewer are left.
    ///
    /// - Returns: Whether they are reserved, until ``release(_:)``.
    func reserve(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard bytes <= state.capacity - state.reserved else { return false }
            state.reserved += bytes
            return true
        }
    }

    func release(_ bytes: Int) { state.withLock { $0.reserved -= bytes } }
}

/// The decoded frames of one animation: all of them if the budget allows, otherwise the latest ones.
///
/// An animation is shown in order, so that some of its frames without the others would spare no decoding.
final class FrameCache: Sendable {
    private struct State {
        var frames: [Int: PixelImage] = [:]
        /// The frames in the order in which they came, for a cache that does not hold all.
        var order: [Int] = []
    }

    /// Frames that are kept of an animation that does not fit: the one that is shown, and the next.
    private static let fewest = 2

    /// Whether all frames are kept.
    let keepsAll: Bool
    private let budget: FrameBudget
    private let reserved: Int
    private let state = Locked(State())
    private let pressure = Locked<MemoryPressure.Subscription?>(nil)

    init(frameCount: Int, frameBytes: Int, budget: FrameBudget) {
        self.budget = budget
        let (bytes, overflow) = frameCount.multipliedReportingOverflow(by: frameBytes)
        keepsAll = !overflow && budget.reserve(bytes)
        reserved = keepsAll ? bytes : 0
    }

    deinit { budget.release(reserved) }

    /// Removes the frames whenever memory is short.
    func followMemoryPressure() {
        guard keepsAll else { return }
        pressure.withLock { subscription in
            subscription = MemoryPressure.shared.subscribe { [weak self] _ in self?.removeAll() }
        }
    }

    var count: Int { state.withLock { $0.frames.count } }

    subscript(frame: Int) -> PixelImage? { state.withLock { $0.frames[frame] } }

    func store(_ image: PixelImage, as frame: Int) {
        let evicted: [PixelImage?] = state.withLock { state in
            state.frames[frame] = image
            guard !keepsAll else { return [] }
            state.order.removeAll { $0 == frame }
            state.order.append(frame)
            var evicted: [PixelImage?] = []
            while state.order.count > Self.fewest {
                evicted.append(state.frames.removeValue(forKey: state.order.removeFirst()))
            }
            return evicted
        }
        // Released here, outside the lock.
        _ = evicted
    }

    func removeAll() {
        let before = state.withLock { state in
            let before = state.frames
            state = State()
            return before
        }
        _ = before
    }
}
