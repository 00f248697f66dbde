/// What `Cache-Control` says, of a request or a response (RFC 9111 section 5.2, RFC 5861, RFC 8246).
///
/// Names count in any case, arguments with or without quotes, unknown directives not at all. Of a directive that comes
/// several times the first is taken (RFC 9111 section 4.2.1). A freshness without a valid number is one of 0 seconds:
/// a response that tries to say something and fails is better taken as stale.
public struct CacheDirectives: Sendable, Hashable {
    /// A directive that holds for the whole response or for some of its fields only.
    public enum Scope: Sendable, Hashable {
        /// The directive is absent.
        case nothing
        /// Only these fields, their names in small letters.
        case fields([String])
        /// The response.
        case everything
    }

    /// Nothing of this exchange may be stored.
    public internal(set) var noStore = false
    /// Not to be used without asking the server.
    public internal(set) var noCache = Scope.nothing
    /// Not for shared caches.
    public internal(set) var isPrivate = Scope.nothing
    /// For shared caches although the request had credentials, and for any cache although its status is unusual.
    public internal(set) var isPublic = false
    /// Never to be used stale.
    public internal(set) var mustRevalidate = false
    /// Never to be used stale by shared caches.
    public internal(set) var proxyRevalidate = false
    /// To be stored, in spite of ``noStore``, by caches that know the status, and only by them.
    public internal(set) var mustUnderstand = false
    /// Does not change while it is fresh: reloading need not ask.
    public internal(set) var immutable = false
    /// Of a request: answer from the cache or not at all.
    public internal(set) var onlyIfCached = false
    /// Seconds a response is fresh for; of a request, the oldest response it takes.
    public internal(set) var maxAge: Int64?
    /// Seconds a response is fresh for in a shared cache.
    public internal(set) var sharedMaxAge: Int64?
    /// Of a request: by how many seconds a response may be stale. `Int64.max` when it does not say.
    public internal(set) var maxStale: Int64?
    /// Of a request: how many seconds a response must be fresh for still.
    public internal(set) var minFresh: Int64?
    /// Seconds a stale response may be used for while it is revalidated.
    public internal(set) var staleWhileRevalidate: Int64?
    /// Seconds a stale response may be used for when the server fails.
    public internal(set) var staleIfError: Int64?
    /// Whether any directive, known or not, stands there at all.
    public internal(set) var isEmpty = true

    /// No directives.
    public init() {}

    /// Those of all lines of a `Cache-Control` field.
    public init(lines: [String]) {
        for line in lines {
            for element in HTTPList.elements(line) { read(element) }
        }
    }

    /// Those of a message's `Cache-Control`.
    public init(_ headers: HTTPHeaders) { self.init(lines: headers.all("Cache-Control")) }

    private mutating func read(_ element: ArraySlice<UInt8>) {
        isEmpty = false
        let equals = element.firstIndex(of: 0x3D)
        // White space before the `=` is no part of a name, so the directive is an unknown one.
        let name = HTTPList.lowercased(element[..<(equals ?? element.endIndex)])
        let argument = equals.map { HTTPList.unquoted(element[element.index(after: $0)...]) }
        apply(name, argument)
    }

    mutating func apply(_ name: String, _ argument: ArraySlice<UInt8>?) {
        let seconds = argument.flatMap(DeltaSeconds.parse)
        switch name {
        case "no-store": noStore = true
        case "no-cache": noCache.add(argument)
        case "private": isPrivate.add(argument)
        case "public": isPublic = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "immutable": immutable = true
        case "only-if-cached": onlyIfCached = true
        case "max-age": maxAge = maxAge ?? seconds ?? 0
        case "s-maxage": sharedMaxAge = sharedMaxAge ?? seconds ?? 0
        case "max-stale": maxStale = maxStale ?? (argument == nil ? .max : seconds)
        case "min-fresh": minFresh = minFresh ?? seconds
        case "stale-while-revalidate": staleWhileRevalidate = staleWhileRevalidate ?? seconds
        case "stale-if-error": staleIfError = staleIfError ?? seconds
        default: break
        }
    }
}

extension CacheDirectives.Scope {
    /// Whether the directive holds for the response as a whole.
    var isEverything: Bool { self == .everything }

    /// The fields it names.
    var fieldNames: [String] { if case .fields(let names) = self { names } else { [] } }

    /// Takes in one more occurrence: without an argument, or with an empty one, it holds for everything.
    mutating func add(_ argument: ArraySlice<UInt8>?) {
        let names = argument.map { HTTPList.names([String(decoding: $0, as: UTF8.self)]) } ?? []
        switch self {
        case .everything: break
        case _ where names.isEmpty: self = .everything
        case .nothing: self = .fields(names)
        case .fields(var others):
            // Let go of the list first, or each of many occurrences copies it.
            self = .nothing
            others += names
            self = .fields(others)
        }
    }
}
