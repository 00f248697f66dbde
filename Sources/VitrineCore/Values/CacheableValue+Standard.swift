extension [UInt8]: CacheableValue {
    public init(cacheBytes: [UInt8]) { self = cacheBytes }
    public func cacheBytes() -> [UInt8] { self }
    public var cacheCost: Int { count }
    public static var isCacheDecodingImmediate: Bool { true }
}

extension String: CacheableValue {
    /// The text whose UTF-8 the bytes are. Ill-formed bytes are refused, not repaired (R2).
    public init(cacheBytes: [UInt8]) throws {
        guard let text = String(validating: cacheBytes, as: UTF8.self) else { throw CacheableValueError.notUTF8 }
        self = text
    }

    public func cacheBytes() -> [UInt8] { Array(utf8) }
    public var cacheCost: Int { utf8.count }
}
