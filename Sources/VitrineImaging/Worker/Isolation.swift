/// Whether decoders that need it run in a worker process of their own.
public enum Isolation: Sendable, Hashable {
    /// In a worker where there is one; else in this process, where the decoder allows it. The default.
    case automatic
    /// Every decode in a worker; without one, decoding fails.
    case always
    /// Everything in this process, for input you made yourself. Formats that only the worker reads fail.
    case inProcess
}
