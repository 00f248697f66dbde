/// The self-correcting predictor: four guesses weighted by how wrong each was nearby.
///
/// Source: ISO/IEC 18181-1 annex H.5.
struct JXLWeightedPredictor {
    /// Its parameters as a stream's header gives them.
    struct Parameters {
        var p1 = 16
        var p2 = 10
        var p3 = (7, 7, 7, 0, 0)
        var weights: (UInt32, UInt32, UInt32, UInt32) = (13, 12, 12, 12)

        init(_ bits: inout JXLBits) {
            if bits.bool() { return }
            (p1, p2) = (bits.bits(5), bits.bits(5))
            p3 = (bits.bits(5), bits.bits(5), bits.bits(5), bits.bits(5), bits.bits(5))
            weights = (
                UInt32(bits.bits(4)), UInt32(bits.bits(4)), UInt32(bits.bits(4)), UInt32(bits.bits(4))
            )
        }
    }

    private let parameters: Parameters
    private let width: Int
    // Two rows each of what the predictor as a whole, and each of the four, was wrong by.
    private let errors: UnsafeMutablePointer<Int>
    private let guessErrors: UnsafeMutablePointer<SIMD4<UInt32>>
    private let reciprocals: UnsafeMutablePointer<UInt32>
    private var guesses = (0, 0, 0, 0)
    private var prediction = 0
    /// The largest error nearby: property 15.
    private(set) var largestError = 0

    /// Give its memory back with ``deallocate()``.
    init(_ parameters: Parameters, width: Int) {
        self.parameters = parameters
        self.width = width
        errors = .allocate(capacity: 2 * (width + 2))
        errors.initialize(repeating: 0, count: 2 * (width + 2))
        guessErrors = .allocate(capacity: 2 * (width + 2))
        guessErrors.initialize(repeating: SIMD4(), count: 2 * (width + 2))
        reciprocals = .allocate(capacity: 64)
        for i in 0..<64 { reciprocals[i] = (1 << 24) / UInt32(i + 1) }
    }

    func deallocate() {
        errors.deallocate()
        guessErrors.deallocate()
        reciprocals.deallocate()
    }

    @inline(__always)
    private func weight(_ error: UInt32, _ maximum: UInt32) -> UInt32 {
        let log = 31 &- (UInt64(error) &+ 1).leadingZeroBitCount &+ 32
        let shift = UInt32(truncatingIfNeeded: max(0, log &- 5))
        return 4 &+ (maximum &* reciprocals[Int(error &>> shift)]) &>> shift
    }

    @inline(__always)
    mutating func predict(_ x: Int, _ y: Int, _ n: Int, _ w: Int, _ ne: Int, _ nw: Int, _ nn: Int) -> Int {
        let current = y & 1 == 1 ? 0 : width &+ 2
        let atN = (y & 1 == 1 ? width &+ 2 : 0) &+ x
        let atNE = x < width &- 1 ? atN &+ 1 : atN
        let atNW = x > 0 ? atN &- 1 : atN
        let sums = guessErrors[atN] &+ guessErrors[atNE] &+ guessErrors[atNW]
        var a = weight(sums[0], parameters.weights.0)
        var b = weight(sums[1], parameters.weights.1)
        var c = weight(sums[2], parameters.weights.2)
        var d = weight(sums[3], parameters.weights.3)

        let (n, w, ne, nw, nn) = (n &<< 3, w &<< 3, ne &<< 3, nw &<< 3, nn &<< 3)
        let eW = x == 0 ? 0 : errors[current &+ x &- 1]
        let (eN, eNW, eNE) = (errors[atN], errors[atNW], errors[atNE])
        var largest = eW
        if eN.magnitude > largest.magnitude { largest = eN }
        if eNW.magnitude > largest.magnitude { largest = eNW }
        if eNE.magnitude > largest.magnitude { largest = eNE }
        largestError = largest

        guesses.0 = w &+ ne &- n
        guesses.1 = n &- (((eN &+ eW &+ eNE) &* parameters.p1) &>> 5)
        guesses.2 = w &- (((eN &+ eW &+ eNW) &* parameters.p2) &>> 5)
        let p3 = parameters.p3
        let byErrors = eNW &* p3.0 &+ eN &* p3.1 &+ eNE &* p3.2
        guesses.3 = n &- ((byErrors &+ (nn &- n) &* p3.3 &+ (nw &- w) &* p3.4) &>> 5)

        let log = UInt32(truncatingIfNeeded: 31 &- (a &+ b &+ c &+ d).leadingZeroBitCount &- 4)
        (a, b, c, d) = (a &>> log, b &>> log, c &>> log, d &>> log)
        let total = a &+ b &+ c &+ d
        var sum = Int(total &>> 1) &- 1
        sum = sum &+ guesses.0 &* Int(a) &+ guesses.1 &* Int(b) &+ guesses.2 &* Int(c) &+ guesses.3 &* Int(d)
        prediction = (sum &* Int(reciprocals[Int(total) &- 1])) &>> 24
        if ((eN ^ eW) | (eN ^ eNW)) <= 0 {
            prediction = max(min(w, ne, n), min(max(w, ne, n), prediction))
        }
        return (prediction &+ 3) &>> 3
    }

    @inline(__always)
    func update(_ x: Int, _ y: Int, _ value: Int) {
        let current = (y & 1 == 1 ? 0 : width &+ 2) &+ x
        let previous = (y & 1 == 1 ? width &+ 2 : 0) &+ x
        let value = value &<< 3
        errors[current] = prediction &- value
        let wrong = SIMD4<UInt32>(
            distance(guesses.0, value), distance(guesses.1, value), distance(guesses.2, value),
            distance(guesses.3, value))
        guessErrors[current] = wrong
        guessErrors[previous &+ 1] &+= wrong
    }

    @inline(__always)
    private func distance(_ guess: Int, _ value: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: (Int(bitPattern: (guess &- value).magnitude) &+ 3) &>> 3)
    }
}
