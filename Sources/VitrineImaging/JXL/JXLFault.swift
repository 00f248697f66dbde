/// Why a JPEG XL codestream is not read on.
enum JXLFault: Error {
    /// The bytes end before.
    case truncated
    /// The bytes break the rules.
    case corrupt(StaticString)
    /// The codestream is in order, but uses what this library does not read by itself.
    case unsupported(StaticString)

    func error(_ name: String) -> ImageError {
        switch self {
        case .truncated: .truncated(input: name)
        case .corrupt(let reason): .corrupt(input: name, reason: "\(reason)")
        case .unsupported(let reason): .unsupported(input: name, reason: "\(reason)")
        }
    }
}
