/// The samples around the one to be predicted.
///
/// Source: ISO/IEC 18181-1 annex H.3 (table H.3, table H.4).
struct JXLNeighbours {
    var w = 0
    var n = 0
    var nw = 0
    var ne = 0
    var nn = 0
    var ww = 0
    var nee = 0

    /// The properties that need nothing else.
    @inline(__always)
    func property(_ index: Int) -> Int {
        switch index {
        case 4: Int(bitPattern: n.magnitude)
        case 5: Int(bitPattern: w.magnitude)
        case 6: n
        case 7: w
        case 10: w &- nw
        case 11: nw &- n
        case 12: n &- ne
        case 13: n &- nn
        case 14: w &- ww
        default: 0
        }
    }

    /// What a predictor says, the weighted one excepted.
    @inline(__always)
    func prediction(_ predictor: Int) -> Int {
        switch predictor {
        case 1: w
        case 2: n
        case 3: (w &+ n) / 2
        case 4: (n &- nw).magnitude < (w &- nw).magnitude ? w : n
        case 5: JXLNeighbours.clampedGradient(n, w, nw)
        case 7: ne
        case 8: nw
        case 9: ww
        case 10: (w &+ nw) / 2
        case 11: (n &+ nw) / 2
        case 12: (n &+ ne) / 2
        case 13: (6 &* n &- 2 &* nn &+ 7 &* w &+ ww &+ nee &+ 3 &* ne &+ 8) / 16
        default: 0
        }
    }

    @inline(__always)
    static func clampedGradient(_ n: Int, _ w: Int, _ nw: Int) -> Int {
        let (low, high) = (min(n, w), max(n, w))
        return nw < low ? high : nw > high ? low : n &+ w &- nw
    }
}
