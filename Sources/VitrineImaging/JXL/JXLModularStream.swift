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

    init(
        _ bits: inout JXLBits, stream: Int, global: (tree: JXLModularTree, code: JXLEntropyCode)?
    ) throws(JXLFault) {
        self.stream = stream
        let usesGlobal = bits.bool()
        weights = JXLWeightedPredictor.Parameters(&bits)
        guard bits.u32((0, 0), (1, 0), (2, 4), (18, 8)) == 0 else { throw .unsupported("transformed channels") }
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
        var weighted = JXLWeightedPredictor(weights, width: channel.width)
        defer { weighted.deallocate() }
        let usesWeighted = tree.usesWeightedPredictor
        let result = tree.nodes.withUnsafeBufferPointer { nodes in
            Result { () throws(JXLFault) in
                for y in 0..<channel.height {
                    try row(&bits, channel, y, nodes.baseAddress!, usesWeighted, &weighted, previous)
                    try bits.check()
                }
            }
        }
        try result.get()
    }

    private mutating func row(
        _ bits: inout JXLBits, _ channel: Channel, _ y: Int, _ nodes: UnsafePointer<JXLModularTree.Node>,
        _ usesWeighted: Bool, _ weighted: inout JXLWeightedPredictor, _ previous: [Channel]
    ) throws(JXLFault) {
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
            let byWeights = usesWeighted
                ? weighted.predict(x, y, around.n, around.w, around.ne, around.nw, around.nn) : 0
            let gradient = around.w &+ around.n &- around.nw

            var node = nodes[0]
            while node.property >= 0 {
                let value: Int
                switch node.property {
                case 2: value = y
                case 3: value = x
                case 8: value = x > 0 ? around.w &- lastGradient : around.w
                case 9: value = gradient
                case 15: value = weighted.largestError
                case 16...: value = JXLModularStream.property(node.property &- 16, x, y, previous)
                default: value = around.property(node.property)
                }
                node = nodes[value > node.split ? node.child : node.child &+ 1]
            }
            lastGradient = gradient
            let guess = node.predictor == 6 ? byWeights : around.prediction(node.predictor)
            let residual = JXLModularTree.signed(try reader.plain(&bits, node.child))
            let value = Int32(truncatingIfNeeded: residual &* node.multiplier &+ node.offset &+ guess)
            row[x] = value
            if usesWeighted { weighted.update(x, y, Int(value)) }
        }
    }

    /// What earlier channels have at the same place: four properties each.
    private static func property(_ index: Int, _ x: Int, _ y: Int, _ previous: [Channel]) -> Int {
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
        let difference = value &- JXLNeighbours.clampedGradient(n, w, nw)
        return index & 3 == 2 ? Int(bitPattern: difference.magnitude) : difference
    }
}
