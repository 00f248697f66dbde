/// The version of a type's stored form: numbers separated by dots, compared number by number. `1.0` equals `1`.
///
/// It orders migration steps; whether stored data is old is decided by the schema's fingerprint.
public struct SchemaVersion: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
    private let numbers: [Int]

    /// The version as text; parts that are no numbers count as 0.
    public init(_ text: String) {
        var numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        while numbers.last == 0, numbers.count > 1 { numbers.removeLast() }
        self.numbers = numbers
    }

    public init(stringLiteral text: String) { self.init(text) }

    public static func < (first: Self, second: Self) -> Bool {
        first.numbers.lexicographicallyPrecedes(second.numbers)
    }
}

extension SchemaVersion: CustomStringConvertible {
    public var description: String { numbers.map { String($0) }.joined(separator: ".") }
}
