/// What a ``HTTPTransport`` can do.
public struct LoadingCapabilities: OptionSet, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Reads from the server only as fast as the body is read, whatever its size.
    public static let backPressure = LoadingCapabilities(rawValue: 1 << 0)
    /// Shows every address before connecting to it. Needed by ``URLAccessPolicy/publicOnly``.
    public static let addressPolicy = LoadingCapabilities(rawValue: 1 << 1)
    /// Several requests over one connection.
    public static let http2 = LoadingCapabilities(rawValue: 1 << 2)
    /// Trusts certificates the program names instead of the system's.
    public static let customTrust = LoadingCapabilities(rawValue: 1 << 3)
    /// Undoes content codings.
    public static let decompression = LoadingCapabilities(rawValue: 1 << 4)
    /// Transfers go on when the process ends.
    public static let survivesProcess = LoadingCapabilities(rawValue: 1 << 5)
}
