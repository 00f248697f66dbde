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
