import Synchronization
import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Gives one pixel and never gives back 16 MB that it has touched.
struct LeakingDecoder: ImageDecoding {
    private static let leakedBytes = 16 << 20
    /// Whoever keeps no address lets the compiler leave the memory out.
    private static let latest = Atomic<UInt>(0)

    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        let leaked = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.leakedBytes)
        leaked.initialize(repeating: 1, count: Self.leakedBytes)
        Self.latest.store(UInt(bitPattern: leaked), ordering: .relaxed)
        return .onePixel
    }
}

/// Gives one pixel, after which the worker's patience is at an end.
struct FinalDecoder: ImageDecoding {
    private static let decoded = Atomic<Bool>(false)
    static var hasDecoded: Bool { decoded.load(ordering: .relaxed) }

    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        Self.decoded.store(true, ordering: .relaxed)
        return .onePixel
    }
}

/// Never comes back.
struct EndlessDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        while true { sleep(1_000) }
    }
}

/// Takes and touches as much memory as it gets, and gives one pixel: how many times 4 MB that was.
struct HungryDecoder: ImageDecoding {
    private static let blockBytes = 4 << 20

    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        var blocks: [UnsafeMutableRawPointer] = []
        // More than any test allows, but not more than a machine has.
        while blocks.count < 255 {
            guard
                let block = mmap(
                    nil, Self.blockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                block != MAP_FAILED
            else { break }
            memset(block, 1, Self.blockBytes)
            blocks.append(block)
        }
        // Long enough for all of several workers to hold theirs at once, if they were let.
        usleep(50_000)
        for block in blocks { munmap(block, Self.blockBytes) }
        return .samples([UInt8(blocks.count)])
    }
}

/// Tries to raise its own limits, and other ways to memory that no limit counts. Gives the error of each, or 0.
struct RaisingDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    private typealias Call = @convention(c) (Int, Int, Int, Int, Int, Int, Int) -> Int

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        // Variadic in C; its arguments are passed like these on both architectures.
        guard let symbol = dlsym(nil, "syscall") else { throw .invalidRequest(reason: "no syscall()") }
        let call = unsafeBitCast(symbol, to: Call.self)
        func code(_ number: Int, _ a: Int, _ b: Int, _ c: Int = 0, _ d: Int = 0) -> UInt8 {
            call(number, a, b, c, d, -1, 0) == -1 ? UInt8(clamping: errno) : 0
        }
        #if arch(x86_64)
        let (setrlimit, prlimit, map) = (160, 302, 9)
        #else
        let (setrlimit, prlimit, map) = (164, 261, 222)
        #endif
        let (data, addressSpace, processorTime) = (2, 9, 0)
        var limits: [UInt64] = [.max, .max]
        let codes = limits.withUnsafeMutableBytes { bytes -> [UInt8] in
            let new = Int(bitPattern: bytes.baseAddress)
            return [
                code(setrlimit, data, new), code(setrlimit, addressSpace, new), code(setrlimit, processorTime, new),
                code(prlimit, 0, data, new), code(prlimit, 0, addressSpace, new), code(prlimit, Int(getpid()), data, new),
                code(prlimit, Int(getppid()), data, new),
                // Shared with nobody: beside the data.
                code(map, 0, 4_096, Int(PROT_READ | PROT_WRITE), Int(MAP_SHARED | MAP_ANONYMOUS)),
            ]
        }
        var now = rlimit()
        guard getrlimit(__rlimit_resource_t(UInt32(data)), &now) == 0 else {
            throw .invalidRequest(reason: "limits cannot be read")
        }
        return .samples(codes + [UInt8(clamping: now.rlim_max >> 20), now.rlim_max == .max ? 1 : 0])
    }
}

/// Gives one pixel, and leaves damage at which the next decode of this process ends.
struct DamagingDecoder: ImageDecoding {
    private static let isDamaged = Atomic<Bool>(false)

    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        if Self.isDamaged.exchange(true, ordering: .relaxed) { abort() }
        return .onePixel
    }
}

/// Ends the process.
struct CrashingDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage { abort() }
}

/// Meets a state that it takes for impossible.
struct InconsistentDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        throw .corrupt(input: source.name, reason: "Internal error: 7")
    }
}

/// Says which options reached it.
struct EchoingDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        throw .corrupt(input: source.name, reason: String(describing: request.options))
    }
}

/// Finds damage in the file.
struct RefusingDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        throw .corrupt(input: source.name, reason: "a wrong checksum")
    }
}

/// Gives one pixel after a wait, in which the process does nothing.
struct WaitingDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        usleep(400_000)
        return .onePixel
    }
}

/// Works without end.
struct BusyDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        while true { if getpid() == 0 { return .onePixel } }
    }
}

extension DecodedImage {
    fileprivate static var onePixel: DecodedImage { .samples([0]) }

    /// One row of grey.
    fileprivate static func samples(_ bytes: [UInt8]) -> DecodedImage {
        let storage = bytes.withUnsafeBytes { PixelStorage(copying: $0) }
        return DecodedImage(
            planes: [PixelPlane(width: bytes.count, height: 1, channels: 1, storage: storage)], model: .gray)
    }
}

/// Allocates 64 MB in small blocks and frees all but the last of them, which keeps the others from the system.
struct HoleyDecoder: ImageDecoding {
    let formats: Set<ImageFormat> = [.png]

    func decode(_ source: ByteSource, _ request: DecodeRequest) throws(ImageError) -> DecodedImage {
        var blocks: [UnsafeMutableRawPointer] = []
        for _ in 0..<2_048 {
            guard let block = malloc(32 << 10) else { break }
            memset(block, 1, 32 << 10)
            blocks.append(block)
        }
        for block in blocks.dropLast() { free(block) }
        return .onePixel
    }
}
