#if canImport(UIKit) && !os(watchOS)
public import Foundation
import UIKit
public import VitrineCore

/// Forwards events of a UIKit program to caches. A memory warning empties the memory level. So does the move to the
/// background, where pending writes are completed before the program is suspended.
///
/// ```swift
/// let events = ApplicationEvents { try? await ImagePipeline.shared.cache.flush() }     // as long as the program runs
/// ```
///
/// The disk level is not changed. One object is enough for all caches that observe the same ``MemoryPressure``.
/// Type-checked, and run against stand-ins for UIKit; not run on a device.
public final class ApplicationEvents: Sendable {
    private let center: NotificationCenter
    // Unchecked: the tokens are set once and only returned to the center.
    private nonisolated(unsafe) let tokens: [any NSObjectProtocol]

    /// Observes the events until the object is deallocated.
    ///
    /// - Parameters:
    ///   - pressure: Receives `.critical` at each warning.
    ///   - emptiesMemoryInBackground: Whether it receives `.critical` in the background, too. Default: true.
    ///   - center: The notification center of UIKit.
    ///   - onBackground: Work to complete in the background, for example to flush caches. The system grants it some
    ///     seconds.
    @MainActor
    public init(
        pressure: MemoryPressure = .shared, emptiesMemoryInBackground: Bool = true,
        center: NotificationCenter = .default, onBackground: @escaping @Sendable () async -> Void = {}
    ) {
        self.center = center
        let warning = center.addObserver(
            forName: UIApplication.didReceiveMemoryWarningNotification, object: nil, queue: nil
        ) { _ in pressure.send(.critical) }
        let background = center.addObserver(
            forName: UIApplication.didEnterBackgroundNotification, object: nil, queue: nil
        ) { _ in
            Self.finish(onBackground)
            if emptiesMemoryInBackground { pressure.send(.critical) }
        }
        tokens = [warning, background]
    }

    deinit { for token in tokens { center.removeObserver(token) } }

    /// Performs work while the system does not suspend the program.
    private static func finish(_ work: @escaping @Sendable () async -> Void) {
        let isOver = AsyncPromise<Bool>()
        Task(priority: .userInitiated) {
            await work()
            isOver.fulfill(true)
        }
        // Calls on a thread of its own, which keeps the program running, and once more when the time is up.
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Vitrine completes writes") { hasExpired in
            if hasExpired { isOver.fulfill(false) } else { _ = isOver.wait() }
        }
    }
}
#endif
