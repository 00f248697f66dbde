/// The directives of `Cache-Control` in a request or response (RFC 9111, section 5.2; RFC 5861; RFC 8246).
///
/// Names are compared without regard to case, and arguments may be quoted. Unknown directives are ignored. If a
/// directive is repeated, the first one applies (RFC 9111, section 4.2.1). A lifetime without a valid number is 0
/// seconds, so that a malformed response counts as stale.
package struct CacheDirectives: Sendable, Hashable {
    /// The scope of a directive.
    package enum Scope: Sendable, Hashable {
        /// The directive is absent.
        case nothing
        /// Only these fields, in lowercase.
        case fields([String])
        /// The whole response.
        case everything
    }

    /// `no-store`: request and response must not be stored.
    package internal(set) var noStore = false
    /// `no-cache`: the response must be revalidated before use.
    package internal(set) var noCache = Scope.nothing
    /// `private`: shared caches must not store the response.
    package internal(set) var isPrivate = Scope.nothing
    /// `public`: shared caches may store the response despite credentials, and all caches despite its status.
    package internal(set) var isPublic = false
    /// `must-revalidate`: the response must not be used when stale.
    package internal(set) var mustRevalidate = false
    /// `proxy-revalidate`: shared caches must not use the response when stale.
    package internal(set) var proxyRevalidate = false
    /// `must-understand`: only caches that know the status may store the response, and they ignore ``noStore``.
    package internal(set) var mustUnderstand = false
    /// `immutable`: the response does not change while it is fresh.
    package internal(set) var immutable = false
    /// `only-if-cached`: the request must be answered from the cache.
    package internal(set) var onlyIfCached = false
    /// `max-age`: the lifetime of a response in seconds, or the highest age that a request accepts.
    package internal(set) var maxAge: Int64?
    /// `s-maxage`: the lifetime in a shared cache, in seconds.
    package internal(set) var sharedMaxAge: Int64?
    /// `max-stale`: the staleness in seconds that a request accepts, or `Int64.max` without an argument.
    package internal(set) var maxStale: Int64?
    /// `min-fresh`: the remaining lifetime in seconds that a request demands.
    package internal(set) var minFresh: Int64?
    /// `stale-while-revalidate`: the time in seconds for which a stale response may be used while it is revalidated.
    package internal(set) var staleWhileRevalidate: Int64?
    /// `stale-if-error`: the time in seconds for which a stale response may be used after an error.
    package internal(set) var staleIfError: Int64?
    /// Whether there are no directives, known or unknown.
    package internal(set) var isEmpty = true

    /// Creates an empty set of directives.
    package init() {}

    /// Parses the lines of a `Cache-Control` field.
    package init(lines: [String]) {
        for line in lines {
            for element in HTTPList.elements(line) { read(element) }
        }
    }

    /// Parses the `Cache-Control` of a message.
    package init(_ headers: HTTPHeaders) { self.init(lines: headers.all("Cache-Control")) }

    private mutating func read(_ element: ArraySlice<UInt8>) {
        isEmpty = false
        let equals = element.firstIndex(of: 0x3D)
        // White space before the `=` makes the directive unknown.
        let name = HTTPList.lowercased(element[..<(equals ?? element.endIndex)])
        let argument = equals.map { HTTPList.unquoted(element[element.index(after: $0)...]) }
        apply(name, argument)
    }

    fileprivate mutating func apply(_ name: String, _ argument: ArraySlice<UInt8>?) {
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
    /// Whether the directive applies to the whole response.
    var isEverything: Bool { self == .everything }

    /// The fields that the directive names.
    var fieldNames: [String] { if case .fields(let names) = self { names } else { [] } }

    /// Adds another occurrence. Without an argument, or with an empty one, it applies to the whole response.
    mutating func add(_ argument: ArraySlice<UInt8>?) {
        let names = argument.map { HTTPList.names([String(decoding: $0, as: UTF8.self)]) } ?? []
        switch self {
        case .everything: break
        case _ where names.isEmpty: self = .everything
        case .nothing: self = .fields(names)
        case .fields(var others):
            // Release the list first, or each of many occurrences would copy it.
            self = .nothing
            others += names
            self = .fields(others)
        }
    }
}

/// Parses fields for one kind of cache, such as `CDN-Cache-Control` (RFC 9213).
///
/// The field is a dictionary of RFC 8941. An invalid one is ignored as a whole.
enum TargetedDirectives {
    /// Returns the directives of a field's lines; nil if there are none or the dictionary is invalid.
    static func parse(_ lines: [String]) -> CacheDirectives? {
        let bytes = Array(lines.joined(separator: ",").utf8)
        var reader = StructuredReader(bytes: bytes)
        reader.skipSpaces()
        guard !reader.isAtEnd else { return nil }
        var members: [String: StructuredReader.Item] = [:]
        while true {
            guard let name = reader.key() else { return nil }
            guard let item = reader.accept(0x3D) ? reader.item() : .flag(true), reader.skipParameters() else {
                return nil
            }
            // The last member of a name applies (RFC 8941, section 3.2).
            members[name] = item
            reader.skipOptionalSpace()
            if reader.isAtEnd { break }
            guard reader.accept(0x2C) else { return nil }
            reader.skipOptionalSpace()
            if reader.isAtEnd { return nil }
        }
        return directives(members)
    }

    private static func directives(_ members: [String: StructuredReader.Item]) -> CacheDirectives {
        var directives = CacheDirectives()
        directives.isEmpty = false
        for (name, item) in members {
            switch item {
            case .flag(false): break
            case .flag(true): directives.apply(name, nil)
            case .integer(let digits): directives.apply(name, digits)
            // Strings are lists of fields; for other directives they have the wrong type.
            case .text(let text) where name == "no-cache" || name == "private": directives.apply(name, text)
            case .text, .other: directives.apply(name, [])
            }
        }
        return directives
    }
}

/// Parses the items of structured fields (RFC 8941) that caching directives use.
private struct StructuredReader {
    enum Item {
        case flag(Bool)
        /// The digits without a sign.
        case integer(ArraySlice<UInt8>)
        case text(ArraySlice<UInt8>)
        /// A valid item that no directive uses: a token, a negative number or a decimal.
        case other
    }

    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }
    private var current: UInt8? { isAtEnd ? nil : bytes[position] }

    mutating func accept(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    mutating func skipSpaces() { while accept(0x20) {} }
    mutating func skipOptionalSpace() { while let byte = current, byte.isHTTPWhitespace { position += 1 } }

    /// Parses a key.
    mutating func key() -> String? {
        let start = position
        guard let first = current, (0x61...0x7A).contains(first) || first == 0x2A else { return nil }
        while let byte = current {
            switch byte {
            case 0x61...0x7A, 0x30...0x39, 0x5F, 0x2D, 0x2E, 0x2A: position += 1
            default: return String(decoding: bytes[start..<position], as: UTF8.self)
            }
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    mutating func item() -> Item? {
        switch current {
        case 0x3F: flag()
        case 0x22: text()
        case .some(let byte) where byte.decimalDigit != nil || byte == 0x2D: number()
        case .some(let byte) where (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte == 0x2A: token()
        default: nil
        }
    }

    /// Skips the parameters of an item, which directives do not use.
    mutating func skipParameters() -> Bool {
        while accept(0x3B) {
            skipSpaces()
            guard key() != nil else { return false }
            if accept(0x3D), item() == nil { return false }
        }
        return true
    }

    private mutating func flag() -> Item? {
        position += 1
        if accept(0x31) { return .flag(true) }
        return accept(0x30) ? .flag(false) : nil
    }

    private mutating func number() -> Item? {
        let isNegative = accept(0x2D)
        let start = position
        while current?.decimalDigit != nil { position += 1 }
        let digits = bytes[start..<position]
        guard (1...15).contains(digits.count) else { return nil }
        guard accept(0x2E) else { return isNegative ? .other : .integer(digits) }
        let fraction = position
        while current?.decimalDigit != nil { position += 1 }
        return (1...3).contains(position - fraction) ? .other : nil
    }

    private mutating func text() -> Item? {
        position += 1
        var result: [UInt8] = []
        while let byte = current {
            position += 1
            switch byte {
            case 0x22: return .text(result[...])
            case 0x5C:
                guard let escaped = current, escaped == 0x22 || escaped == 0x5C else { return nil }
                result.append(escaped)
                position += 1
            case 0x20...0x7E: result.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func token() -> Item? {
        while let byte = current, byte.isHTTPToken || byte == 0x3A || byte == 0x2F { position += 1 }
        return .other
    }
}
