import VitrineImageCore

/// One modular stream without transforms: a header, codes if they are not the frame's, and channels one by one.
///
/// Source: ISO/IEC 18181-1 annex H.2 and H.3 (properties, predictors).
struct JXLModularStream {
    /// A channel's samples, rows without gaps, in memory that outlives the reading.
    struct Channel {
        var samples: UnsafeMutablePointer<Int32>
        var width: Int
        var height: Int
        /// Samples from one row to the next.
        var stride: Int
    }

    private let weights: JXLWeightedPredictor.Parameters
    private let tree: JXLModularTree
    private let code: JXLEntropyCode
    private let stream: Int
    private var reader: JXLEntropyReader
    /// Nodes of trees that were looked at, and the most that may be.
    private var steps = 0
    private var maximumSteps = JXLModularStream.freeSteps

    /// The nodes looked at for a sample on average at most, above ``freeSteps``. Trees of encoders have some dozen
    /// levels; a chain of nodes as long as the file would be walked for each sample.
    private static let stepsPerSample = 64
    private static let freeSteps = 1 << 16

    init(
        _ bits: inout JXLBits, stream: Int, global: (tree: JXLModularTree, code: JXLEntropyCode)?
    ) throws(JXLFault) {
        self.stream = stream
        let usesGlobal = bits.bool()
        weights = JXLWeightedPredictor.Parameters(&bits)
        guard bits.u32(a: (0, 0), b: (1, 0), c: (2, 4), d: (18, 8)) == 0 else {
            throw .unsupported("transformed channels")
        }
        if usesGlobal {
            guard let global else { throw .corrupt("no tree") }
            (tree, code) = global
        } else {
            tree = try JXLModularTree(&bits)
            code = try JXLEntropyCode(&bits, contexts: tree.leafCount)
        }
        guard !code.hasCopies else { throw .unsupported("copies among samples") }
        reader = JXLEntropyReader(code, &bits)
        try bits.check()
    }

    func finish(_ bits: JXLBits) throws(JXLFault) { try reader.finish(bits) }

    /// Reads channel number `index`; `previous` are those before it, of the same size, nearest first.
    mutating func read(
        _ bits: inout JXLBits, _ channel: Channel, index: Int, previous: [Channel]
    ) throws(JXLFault) {
        var tree = tree.specialized(channel: index, stream: stream)
        for i in tree.nodes.indices where tree.nodes[i].property < 0 {
            tree.nodes[i].child = Int(code.clusters[tree.nodes[i].child])
        }
        var weighted = JXLWeightedPredictor(weights, width: channel.width, isUsed: tree.usesWeightedPredictor)
        defer { weighted.deallocate() }
        let result = tree.nodes.withUnsafeBufferPointer { nodes in
            Result { () throws(JXLFault) in
                for y in 0..<channel.height {
                    maximumSteps &+= channel.width &* JXLModularStream.stepsPerSample
                    try row(
                        &bits, channel: channel, y: y, nodes: nodes.baseAddress!, weighted: &weighted,
                        previous: previous)
                    try bits.check()
                    guard steps <= maximumSteps else { throw .unsupported("a tree of too many levels") }
                }
            }
        }
        try result.get()
    }

    private mutating func row(
        _ bits: inout JXLBits, channel: Channel, y: Int, nodes: UnsafePointer<JXLModularTree.Node>,
        weighted: inout JXLWeightedPredictor, previous: [Channel]
    ) throws(JXLFault) {
        let usesWeighted = weighted.isUsed
        let row = channel.samples + y * channel.stride
        let above = y > 0 ? row - channel.stride : row
        let above2 = y > 1 ? above - channel.stride : above
        let width = channel.width
        var lastGradient = 0
        for x in 0..<width {
            var around = JXLNeighbours()
            around.w = x > 0 ? Int(row[x &- 1]) : y > 0 ? Int(above[x]) : 0
            around.n = y > 0 ? Int(above[x]) : around.w
            around.nw = x > 0 && y > 0 ? Int(above[x &- 1]) : around.w
            around.ne = x &+ 1 < width && y > 0 ? Int(above[x &+ 1]) : around.n
            around.nn = y > 1 ? Int(above2[x]) : around.n
            around.ww = x > 1 ? Int(row[x &- 2]) : around.w
            around.nee = x &+ 2 < width && y > 0 ? Int(above[x &+ 2]) : around.ne
            let byWeights = usesWeighted ? weighted.predict(x, y, around: around) : 0
            let gradient = around.w &+ around.n &- around.nw

            var node = nodes[0]
            while node.property >= 0 {
                steps &+= 1
                let value: Int
                switch node.property {
                case 2: value = y
                case 3: value = x
                case 8: value = x > 0 ? around.w &- lastGradient : around.w
                case 9: value = gradient
                case 15: value = weighted.largestError
                case 16...: value = JXLModularStream.property(node.property &- 16, x: x, y: y, previous: previous)
                default: value = around.property(node.property)
                }
                node = nodes[value > node.split ? node.child : node.child &+ 1]
            }
            lastGradient = gradient
            let guess = node.predictor == 6 ? byWeights : around.prediction(node.predictor)
            let residual = JXLModularTree.signed(try reader.plain(&bits, node.child))
            let value = Int32(truncatingIfNeeded: residual &* node.multiplier &+ node.offset &+ guess)
            row[x] = value
            if usesWeighted { weighted.update(x, y, value: Int(value)) }
        }
    }

    /// The samples of earlier channels at the same place: four properties each.
    private static func property(_ index: Int, x: Int, y: Int, previous: [Channel]) -> Int {
        guard index / 4 < previous.count else { return 0 }
        let channel = previous[index / 4]
        let row = channel.samples + y * channel.stride
        let above = y > 0 ? row - channel.stride : row
        let value = Int(row[x])
        if index & 3 == 0 { return Int(bitPattern: value.magnitude) }
        if index & 3 == 1 { return value }
        let w = x > 0 ? Int(row[x - 1]) : 0
        let n = y > 0 ? Int(above[x]) : w
        let nw = x > 0 && y > 0 ? Int(above[x - 1]) : w
        let difference = value &- JXLNeighbours.clampedGradient(n: n, w: w, nw: nw)
        return index & 3 == 2 ? Int(bitPattern: difference.magnitude) : difference
    }
}

/// The decision tree by which modular streams choose context and predictor of each sample.
///
/// Source: ISO/IEC 18181-1 annex H.4.
struct JXLModularTree {
    struct Node {
        /// The property looked at; -1 for a leaf.
        var property = -1
        /// Properties above this go left.
        var split = 0
        /// Left child, the right one stands behind it; of a leaf the context.
        var child = 0
        var predictor = 0
        var offset = 0
        var multiplier = 1
    }

    static let maximumNodes = 1 << 16

    var nodes: [Node] = []
    var leafCount = 0

    private init() {}

    init(_ bits: inout JXLBits) throws(JXLFault) {
        let code = try JXLEntropyCode(&bits, contexts: 6)
        var reader = JXLEntropyReader(code, &bits)
        var pending = 1
        while pending > 0 {
            pending -= 1
            guard nodes.count + pending < JXLModularTree.maximumNodes else { throw .unsupported("tree too large") }
            let property = try reader.read(&bits, 1) - 1
            guard property < 256 else { throw .corrupt("tree") }
            var node = Node(property: property)
            if property < 0 {
                node.predictor = try reader.read(&bits, 2)
                node.offset = JXLModularTree.signed(try reader.read(&bits, 3))
                let shift = try reader.read(&bits, 4)
                let factor = try reader.read(&bits, 5)
                guard node.predictor < 14, shift < 31, factor < 1 << (31 - shift) else { throw .corrupt("tree") }
                node.multiplier = (factor + 1) << shift
                node.child = leafCount
                leafCount += 1
            } else {
                node.split = JXLModularTree.signed(try reader.read(&bits, 0))
                node.child = nodes.count + pending + 1
                pending += 2
            }
            nodes.append(node)
            try bits.check()
        }
        try reader.finish(bits)
    }

    @inline(__always)
    static func signed(_ value: Int) -> Int { (value &>> 1) ^ -(value & 1) }

    /// The tree that is left where channel and stream are known.
    func specialized(channel: Int, stream: Int) -> JXLModularTree {
        var result = JXLModularTree()
        result.leafCount = leafCount
        func settled(_ index: Int) -> Node {
            var node = nodes[index]
            while node.property == 0 || node.property == 1 {
                node = nodes[(node.property == 0 ? channel : stream) > node.split ? node.child : node.child + 1]
            }
            return node
        }
        // Children are appended in pairs, so that the right one stands behind the left.
        result.nodes.append(settled(0))
        var next = 0
        while next < result.nodes.count {
            if result.nodes[next].property >= 0 {
                let child = result.nodes[next].child
                result.nodes[next].child = result.nodes.count
                result.nodes.append(settled(child))
                result.nodes.append(settled(child + 1))
            }
            next += 1
        }
        return result
    }

    /// Whether a node looks at the weighted predictor's error or a leaf predicts by it.
    var usesWeightedPredictor: Bool {
        nodes.contains { $0.property == 15 || ($0.property < 0 && $0.predictor == 6) }
    }
}

/// The samples around the one to be predicted.
///
/// Source: ISO/IEC 18181-1 annex H.3 (table H.3, table H.4).
private struct JXLNeighbours {
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

    /// The value of a predictor other than the weighted one.
    @inline(__always)
    func prediction(_ predictor: Int) -> Int {
        switch predictor {
        case 1: w
        case 2: n
        case 3: (w &+ n) / 2
        case 4: (n &- nw).magnitude < (w &- nw).magnitude ? w : n
        case 5: JXLNeighbours.clampedGradient(n: n, w: w, nw: nw)
        case 7: ne
        case 8: nw
        case 9: ww
        case 10: (w &+ nw) / 2
        case 11: (n &+ nw) / 2
        case 12: (n &+ ne) / 2
        case 13: weightedSum / 16
        default: 0
        }
    }

    /// Sixteen times the value of predictor 13.
    @inline(__always)
    private var weightedSum: Int {
        let above: Int = 6 &* n &- 2 &* nn &+ nee &+ 3 &* ne
        let beside: Int = 7 &* w &+ ww
        return above &+ beside &+ 8
    }

    @inline(__always)
    static func clampedGradient(n: Int, w: Int, nw: Int) -> Int {
        let (low, high) = (min(n, w), max(n, w))
        return nw < low ? high : nw > high ? low : n &+ w &- nw
    }
}

/// The self-correcting predictor: four guesses weighted by how wrong each was nearby.
///
/// Source: ISO/IEC 18181-1 annex H.5.
private struct JXLWeightedPredictor {
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

    /// Whether the tree of the channel uses it.
    let isUsed: Bool
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
    init(_ parameters: Parameters, width: Int, isUsed: Bool) {
        self.parameters = parameters
        self.width = width
        self.isUsed = isUsed
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
    mutating func predict(_ x: Int, _ y: Int, around: JXLNeighbours) -> Int {
        let current = y & 1 == 1 ? 0 : width &+ 2
        let atN = (y & 1 == 1 ? width &+ 2 : 0) &+ x
        let atNE = x < width &- 1 ? atN &+ 1 : atN
        let atNW = x > 0 ? atN &- 1 : atN
        let sums = guessErrors[atN] &+ guessErrors[atNE] &+ guessErrors[atNW]
        var a = weight(sums[0], parameters.weights.0)
        var b = weight(sums[1], parameters.weights.1)
        var c = weight(sums[2], parameters.weights.2)
        var d = weight(sums[3], parameters.weights.3)

        let (n, w, ne, nw) = (around.n &<< 3, around.w &<< 3, around.ne &<< 3, around.nw &<< 3)
        let nn = around.nn &<< 3
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
    func update(_ x: Int, _ y: Int, value: Int) {
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
