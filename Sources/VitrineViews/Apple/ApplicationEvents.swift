#if canImport(UIKit) && !os(watchOS)
public import Foundation
import UIKit
public import VitrineCore

/// Tells caches what becomes of a UIKit program: memory is emptied when the system is short of it (R17) and when the
/// program goes to the background (R18), where what still waits is written before it is halted.
///
/// ```swift
/// let events = ApplicationEvents { try? await Shared.images.flush() }     // for as long as the program runs
/// ```
///
/// The disk is left alone. Everything that follows the same ``MemoryPressure`` hears of it, so one object does for the
/// program. Type-checked, and run against stand-ins for UIKit; not run on a device.
public final class ApplicationEvents: Sendable {
    private let center: NotificationCenter
    // Unchecked: the tokens are set once and only given back to the centre.
    private nonisolated(unsafe) let tokens: [any NSObjectProtocol]

    /// Begins to listen, until the object goes.
    ///
    /// - Parameters:
    ///   - pressure: Whom to tell: `.critical` at each warning.
    ///   - emptiesMemoryInBackground: Whether to tell it as well when the program goes to the background. Default true.
    ///   - center: Where UIKit posts its notifications.
    ///   - onBackground: What is still to be done in the background, for example to flush caches. The system grants it
    ///     some seconds.
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

    /// Does something while the system is kept from halting the program.
    private static func finish(_ work: @escaping @Sendable () async -> Void) {
        let isOver = Promise<Bool>()
        Task(priority: .userInitiated) {
            await work()
            isOver.fulfill(true)
        }
        // Calls on a thread of its own, which holds the program; and again, on another one, when time is up.
        ProcessInfo.processInfo.performExpiringActivity(withReason: "Vitrine writes what waits") { hasExpired in
            if hasExpired { isOver.fulfill(false) } else { _ = isOver.wait() }
        }
    }
}
#endif
