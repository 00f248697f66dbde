import Foundation

/// The beginning of allowed addresses.
struct AllowedPrefix: Sendable {
    let origin: String
    let path: String

    init?(_ text: String) {
        if text.lowercased().hasPrefix("local:///") {
            (origin, path) = ("local", String(text.dropFirst(9)))
        } else if text.lowercased().hasPrefix("s3://") {
            let rest = text.dropFirst(5)
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            (origin, path) = ("s3://" + rest[..<slash], String(rest[slash...].dropFirst()))
        } else {
            guard let url = URL(string: text), let origin = Self.origin(of: url) else { return nil }
            self.origin = origin
            path = url.path(percentEncoded: true)
        }
    }

    func contains(_ source: SourceTable.Source) -> Bool {
        switch source.place {
        case .web(let url):
            guard Self.origin(of: url) == origin else { return false }
            let path = url.path(percentEncoded: true)
            // A server may resolve these to a path with another beginning.
            let isPlain = !path.split(separator: "/").contains { Self.leadsUp($0) }
            return isPlain && (path.isEmpty ? "/" : path).hasPrefix(self.path)
        case .local(let names): return origin == "local" && names.joined(separator: "/").hasPrefix(path)
        case .bucket(let bucket, let key): return origin == "s3://" + bucket && key.hasPrefix(path)
        case .inline: return false
        }
    }

    private static func leadsUp(_ name: Substring) -> Bool {
        let decoded = String(name).removingPercentEncoding ?? ".."
        return decoded == ".." || decoded.contains("../") || decoded.contains("..\\")
    }

    private static func origin(of url: URL) -> String? {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = url.host(percentEncoded: false)?.lowercased()
        else { return nil }
        return "\(scheme)://\(host):\(url.port ?? (scheme == "http" ? 80 : 443))"
    }
}
