extension JSON {
    /// One value in a JSON text. Accessors are nil where the value is of another kind.
    public indirect enum Value: Sendable, Hashable {
        case null
        case bool(Bool)
        case number(Number)
        case string(String)
        case array([Value])
        case object([String: Value])

        /// Whether it is null.
        public var isNull: Bool { self == .null }

        /// True or false.
        public var bool: Bool? {
            if case .bool(let value) = self { value } else { nil }
        }

        /// A number as it was written.
        public var number: Number? {
            if case .number(let value) = self { value } else { nil }
        }

        /// A number that is a whole one and fits.
        public var int: Int? { number?.int64.flatMap { Int(exactly: $0) } }

        /// A number that is a whole one, not negative, and fits.
        public var uint: UInt? { number?.uint64.flatMap { UInt(exactly: $0) } }

        /// A number as the nearest double.
        public var double: Double? { number?.double }

        /// A text.
        public var string: String? {
            if case .string(let value) = self { value } else { nil }
        }

        /// The elements of an array.
        public var array: [Value]? {
            if case .array(let value) = self { value } else { nil }
        }

        /// The members of an object.
        public var object: [String: Value]? {
            if case .object(let value) = self { value } else { nil }
        }

        /// A member; nil if there is none or this is no object.
        public subscript(name: String) -> Value? { object?[name] }

        /// An element; nil if there is none or this is no array.
        public subscript(index: Int) -> Value? {
            guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
            return elements[index]
        }

        /// About the bytes it occupies. Recursion is bounded by ``JSON/maximumDepth`` for parsed values.
        var cost: Int {
            let own = MemoryLayout<Value>.stride + 32
            switch self {
            case .null, .bool, .number: return own
            case .string(let text): return own + text.utf8.count
            case .array(let elements): return elements.reduce(own) { $0 + $1.cost }
            case .object(let members):
                return members.reduce(own) { $0 + 16 + $1.key.utf8.count + $1.value.cost }
            }
        }
    }
}

extension JSON.Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .number(.integer(value)) }
    /// Traps for a literal that is not finite, which JSON cannot say.
    public init(floatLiteral value: Double) {
        precondition(value.isFinite, "JSON has no \(value)")
        self = .number(.double(value))
    }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: JSON.Value...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON.Value)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }
}
