#if os(Linux)
import Glibc

/// Which proxy connects to which host.
///
/// Read from the environment once, in the manner of curl(1): `http_proxy` in small letters only, as a web server passes
/// the client's `Proxy:` header on as `HTTP_PROXY`.
package struct ProxySettings: Sendable {
    private var http: String?
    private var https: String?
    private var exceptions: [Substring] = []

    init(_ proxy: CurlLoader.Proxy, environment: (String) -> String?) {
        switch proxy {
        case .none: self.init { _ in nil }
        case .url(let url): self.init { $0 == "all_proxy" ? url : nil }
        case .environment: self.init(environment: environment)
        }
    }

    /// The process's own environment.
    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// What an environment says.
    package init(environment: (String) -> String?) {
        func value(_ names: String...) -> String? { names.lazy.compactMap(environment).first { !$0.isEmpty } }
        http = value("http_proxy", "all_proxy", "ALL_PROXY")
        https = value("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        let list = (value("no_proxy", "NO_PROXY") ?? "").lowercased()
        exceptions = list.split { $0 == "," || $0 == " " }
    }

    /// Whether nobody connects in anybody's place.
    package var isEmpty: Bool { http == nil && https == nil }

    /// The proxy for an address; nil for none.
    package func proxy(for url: SourceURL) -> String? {
        guard let proxy = url.isSecure ? https : http else { return nil }
        return exceptions.contains { Self.matches($0, url.host) } ? nil : proxy
    }

    /// Whether an entry of `no_proxy` names the host: `*`, a name and all names in it, an address or a network.
    private static func matches(_ entry: Substring, _ host: SourceURL.Host) -> Bool {
        if entry == "*" { return true }
        switch host {
        case .name(let name):
            let domain = entry.drop { $0 == "." }
            return !domain.isEmpty && (name == domain || name.hasSuffix("." + domain))
        case .address(let address):
            return AddressRange(String(entry))?.contains(address) ?? false
        }
    }
}
#endif
