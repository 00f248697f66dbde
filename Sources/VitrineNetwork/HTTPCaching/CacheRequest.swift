#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a cache has to know of a request.
public struct CacheRequest: Sendable, Hashable {
    /// The method, in capitals.
    public var method: String
    /// What is asked for.
    public var url: URL
    /// The fields the requester wants to send.
    public var headers: HTTPHeaders

    public init(method: String = "GET", url: URL, headers: HTTPHeaders = HTTPHeaders()) {
        self.method = method
        self.url = url
        self.headers = headers
    }

    /// The directives of the request. Without `Cache-Control`, `Pragma: no-cache` counts (RFC 9111 section 5.4).
    var directives: CacheDirectives {
        var directives = CacheDirectives(headers)
        if directives.isEmpty, HTTPList.names(headers.all("Pragma")).contains("no-cache") {
            directives.noCache = .everything
        }
        return directives
    }

    /// Whether stored responses can answer the request at all.
    var isLookup: Bool { method == "GET" || method == "HEAD" }

    /// Whether the method may change what is stored at the server (RFC 9110 section 9.2.1). Unknown ones may.
    var isUnsafe: Bool { !["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }
}
