package import VitrineGTK

extension Demo {
    /// Scrolls a list with decreasing speed, as after a fling with a finger.
    ///
    /// - Parameters:
    ///   - list: The list.
    ///   - speed: The initial speed, in points a second. Negative speeds scroll up.
    ///   - seconds: The time until the list stops.
    package func fling(_ list: ItemList, speed: Double, seconds: Double) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            var start: Int64?, last: Int64 = 0
            list.scroller.onFrame { time in
                let begin = start ?? time
                if start == nil { (start, last) = (time, time) }
                let passed = Double(time - begin) / 1e6, step = Double(time - last) / 1e6
                last = time
                guard passed < seconds else {
                    continuation.resume()
                    return false
                }
                list.offset = min(list.maximumOffset, max(0, list.offset + speed * (1 - passed / seconds) * step))
                return true
            }
        }
    }
}
