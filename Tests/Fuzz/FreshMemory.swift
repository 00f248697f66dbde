#if canImport(Glibc)
    import Glibc
#endif

/// What memory from `malloc` holds before it is written, where the C library can be told (mallopt(3), `M_PERTURB`).
///
/// Blocks of up to 1 KB come from a cache of each thread that is not filled, unless the environment has
/// `GLIBC_TUNABLES=glibc.malloc.tcache_count=0`.
enum FreshMemory {
    /// Two fills that differ in every bit. The library writes their complements.
    static let fills: [UInt8] = [0x55, 0xAA]

    #if canImport(Glibc)
        private typealias Setting = @convention(c) (Int32, Int32) -> Int32
        private static let mallopt = dlsym(nil, "mallopt").map { unsafeBitCast($0, to: Setting.self) }

        static func fill(_ byte: UInt8) { _ = mallopt?(-6, Int32(byte)) }
    #else
        static func fill(_ byte: UInt8) {}
    #endif
}
