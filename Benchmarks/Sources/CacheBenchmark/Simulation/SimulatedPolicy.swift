/// A cache that keeps numbers only: whether a request hits.
protocol SimulatedPolicy {
    init(trace: RequestTrace, capacity: Int)
    /// Asks for an object and, if it is not there, stores it.
    mutating func request(_ object: Int, cost: Int) -> Bool
}

extension SimulatedPolicy {
    /// Requests that hit, in percent.
    static func hitRatio(_ trace: RequestTrace, capacity: Int) -> Double {
        var policy = Self(trace: trace, capacity: capacity)
        var hits = 0
        for request in trace.requests where policy.request(Int(request), cost: trace.costs[Int(request)]) { hits += 1 }
        return 100 * Double(hits) / Double(trace.requests.count)
    }
}

/// A doubly linked list of numbered objects with the sum of their costs.
struct ObjectList {
    private var next: [Int32]
    private var previous: [Int32]
    private let head: Int32
    private(set) var cost = 0

    init(objectCount: Int) {
        next = [Int32](repeating: -1, count: objectCount + 1)
        previous = next
        head = Int32(objectCount)
        next[objectCount] = head
        previous[objectCount] = head
    }

    var isEmpty: Bool { next[Int(head)] == head }
    /// The oldest object.
    var oldest: Int { Int(previous[Int(head)]) }
    /// The newest object.
    var newest: Int { Int(next[Int(head)]) }

    func contains(_ object: Int) -> Bool { next[object] >= 0 }
    /// The object that came just after; nil at the end.
    func newer(than object: Int) -> Int? { previous[object] == head ? nil : Int(previous[object]) }

    mutating func add(_ object: Int, cost: Int) {
        let first = next[Int(head)]
        next[object] = first
        previous[object] = head
        previous[Int(first)] = Int32(object)
        next[Int(head)] = Int32(object)
        self.cost += cost
    }

    mutating func remove(_ object: Int, cost: Int) {
        next[Int(previous[object])] = next[object]
        previous[Int(next[object])] = previous[object]
        next[object] = -1
        self.cost -= cost
    }
}
