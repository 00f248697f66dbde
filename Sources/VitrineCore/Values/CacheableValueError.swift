/// Why bytes are not the value they were asked to be.
public enum CacheableValueError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The bytes are not well-formed UTF-8. They may have been stored as another type: use another key or format.
    case notUTF8
    /// The bytes do not represent a value of the named type.
    case notRepresentable(type: String)

    public var description: String {
        switch self {
        case .notUTF8: "The bytes are not UTF-8 text; they may have been stored as another type."
        case .notRepresentable(let type): "The bytes are not a value of type \(type)."
        }
    }
}
