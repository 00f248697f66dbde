/// Why a ``URLAccessPolicy`` refuses an address, a redirect or a response.
public enum PolicyViolation: Error, Sendable, Hashable {
    /// The scheme is not among those allowed.
    case scheme(String)
    /// The host is not among those allowed, or among those refused.
    case host(String)
    /// The port is not among those allowed.
    case port(Int)
    /// The URL holds a name or password, which nobody should follow.
    case userInformation
    /// The address is one that the policy keeps away from.
    case address(IPAddress)
    /// A public address redirects to one that is not.
    case redirectToPrivate(IPAddress)
    /// An encrypted address redirects to one that is not.
    case redirectToInsecure
    /// The loader cannot show the addresses it connects to, or a proxy connects in its place.
    case addressesUnknown
}
