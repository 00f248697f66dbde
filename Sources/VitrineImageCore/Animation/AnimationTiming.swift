/// The clock of an animation: which frame is shown at which time.
///
/// ```swift
/// let timing = AnimationTiming(durations: [0.1, 0.2, 0.1])
/// timing.position(at: 0.25).frame      // 1
/// timing.position(at: 0.25).remaining  // 0.05
/// ```
///
/// A frame that its file shows for 0.01 seconds or less is shown for 0.1 seconds, as in browsers.
public struct AnimationTiming: Sendable, Hashable {
    /// Seconds each frame is shown, in order.
    public let durations: [Double]
    /// How often the animation is shown; 0 for endless loops.
    public let loopCount: Int
    /// The seconds at which the frames begin, and the end.
    private let starts: [Double]

    /// Creates the clock of an animation.
    ///
    /// - Parameters:
    ///   - durations: Seconds of each frame. Values that are not finite or not above 0.01 count as 0.1.
    ///   - loopCount: How often the animation is shown; 0 or less for endless loops.
    public init(durations: [Double], loopCount: Int = 0) {
        self.durations = durations.map { FrameTiming.seconds($0.isFinite ? min($0, Self.maximumSeconds) : 0) }
        self.loopCount = max(0, loopCount)
        starts = self.durations.reduce(into: [0]) { $0.append(($0.last ?? 0) + $1) }
    }

    /// The longest that a frame is shown: GIF has 16 bits of hundredths, PNG 16 bits of seconds.
    private static let maximumSeconds = 65_536.0

    /// The number of frames.
    public var frameCount: Int { durations.count }

    /// Seconds of one loop.
    public var duration: Double { starts[durations.count] }

    /// Seconds from the beginning of a loop to a frame.
    ///
    /// - Parameter frame: The frame, from 0. Others count as the first or the last.
    package func start(of frame: Int) -> Double { starts[max(0, min(frame, durations.count - 1))] }

    /// Returns the frame that is shown at a time.
    ///
    /// - Parameter seconds: Seconds since the animation began. Negative values count as 0.
    public func position(at seconds: Double) -> (frame: Int, loop: Int, remaining: Double?) {
        guard durations.count > 1, seconds > 0 else {
            return (frame: 0, loop: 0, remaining: durations.count > 1 ? durations[0] : nil)
        }
        let whole = (seconds / duration).rounded(.down)
        let last = Double(loopCount - 1)
        if loopCount > 0, whole > last {
            return (frame: durations.count - 1, loop: loopCount - 1, remaining: nil)
        }
        let loop = Int(min(whole, 1e15))
        let time = max(0, min(seconds - whole * duration, duration))
        // The last frame that begins at or before the time.
        var (low, high) = (0, durations.count - 1)
        while low < high {
            let middle = (low + high + 1) / 2
            if starts[middle] <= time { low = middle } else { high = middle - 1 }
        }
        let isEnd = loopCount > 0 && loop == loopCount - 1 && low == durations.count - 1
        return (frame: low, loop: loop, remaining: isEnd ? nil : max(0, starts[low + 1] - time))
    }
}

/// How long a frame of an animation stays, as every browser shows it.
package enum FrameTiming {
    /// Seconds for a delay the file gives in seconds: one up to 0.01 s means 0.1 s. Files that say so are far too
    /// fast to be meant; WebKit, Blink and Gecko agree on the rule.
    package static func seconds(_ delay: Double) -> Double { delay > 0.0105 ? delay : 0.1 }
}
