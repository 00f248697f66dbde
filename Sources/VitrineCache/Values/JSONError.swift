/// Why bytes are no JSON. Positions count bytes from 0.
public enum JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The text ends in the middle of a value.
    case unexpectedEnd
    /// There is something that cannot stand here: most often a missing quote or comma.
    case unexpectedByte(UInt8, position: Int)
    /// A string has bytes that are not UTF-8, an escape that does not exist, or half a surrogate pair.
    case invalidString(position: Int)
    /// A number is not written as RFC 8259 section 6 demands, or has more than 1,000 characters.
    case invalidNumber(position: Int)
    /// Arrays and objects are nested deeper than ``JSON/maximumDepth``.
    case tooDeep(position: Int)
    /// The top level is a text, a number, true, false or null.
    case fragment

    public var description: String {
        switch self {
        case .unexpectedEnd: "The JSON text ends too early."
        case .unexpectedByte(let byte, let position): "Byte \(byte) at \(position) cannot stand there in JSON."
        case .invalidString(let position): "The string at byte \(position) is not well-formed."
        case .invalidNumber(let position): "The number at byte \(position) is not well-formed."
        case .tooDeep(let position): "At byte \(position) more than \(JSON.maximumDepth) levels are nested."
        case .fragment: "The top level of the JSON text is neither an object nor an array."
        }
    }
}
