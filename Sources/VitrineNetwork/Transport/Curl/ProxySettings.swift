#if os(Linux)
import Glibc

/// The proxies of the environment.
///
/// The variables are those of curl(1). `http_proxy` is read in lowercase only, because web servers pass the client's
/// `Proxy:` header to CGI programs as `HTTP_PROXY`.
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

    /// Reads a variable of the process.
    static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Creates the settings of an environment.
    package init(environment: (String) -> String?) {
        func value(_ names: String...) -> String? { names.lazy.compactMap(environment).first { !$0.isEmpty } }
        http = value("http_proxy", "all_proxy", "ALL_PROXY")
        https = value("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        let list = (value("no_proxy", "NO_PROXY") ?? "").lowercased()
        exceptions = list.split { $0 == "," || $0 == " " }
    }

    /// Whether there is no proxy.
    package var isEmpty: Bool { http == nil && https == nil }

    /// Returns the proxy of a URL; nil for none.
    package func proxy(for url: SourceURL) -> String? {
        guard let proxy = url.isSecure ? https : http else { return nil }
        return exceptions.contains { Self.matches($0, url.host) } ? nil : proxy
    }

    /// Returns whether an entry of `no_proxy` matches the host: `*`, a domain with all names below it, an address or a
    /// network.
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
