import Testing
import VitrineCore

struct ByteCountTests {
    @Test func readsSizesAsPeopleWriteThem() {
        let vectors: [String: Int] = [
            "10 MB": 10_000_000, "1.5GiB": 1_610_612_736, "64k": 64_000, "4096": 4096, " 7 b ": 7, "0": 0,
            "0.5 KiB": 512, "1.0000001 MB": 1_000_000, "2ki": 2048, ".5kB": 500, "1 EiB": 1 << 60,
            "9223372036854775807": .max, "0.3333333 EB": 333_333_000_000_000_000,
        ]
        for (text, bytes) in vectors { #expect(ByteCount(text)?.bytes == bytes, "\(text)") }
    }

    @Test func refusesEverythingElse() {
        for text in ["", " ", "MB", "-1", "1.2.3", "1 XB", "1 MBB", "1e3", "10 EiB", "9223372036854775808", "1 M B",
            "18446744073709551616", "1 KiBB", ".", "0x10"] {
            #expect(ByteCount(text) == nil, "\(text)")
        }
    }

    @Test func writesTheLargestUnit() {
        let decimal = [0: "0 B", 999: "999 B", 1000: "1 kB", 1550: "1.6 kB", 999_949: "999.9 kB", 999_950: "1 MB",
            1_500_000: "1.5 MB", Int.max: "9.2 EB"]
        for (bytes, text) in decimal { #expect("\(ByteCount(bytes))" == text) }
        let binary = [1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 30: "1 GiB", Int.max: "8 EiB"]
        for (bytes, text) in binary { #expect(ByteCount(bytes).formatted(.binary) == text) }
    }

    @Test func arithmeticNeverTraps() {
        #expect(ByteCount.unlimited + 1 == .unlimited)
        #expect(ByteCount(3) - 5 == .zero)
        #expect(ByteCount.gigabytes(.max) == .unlimited)
        #expect(ByteCount(5) * -1 == .zero)
        #expect(ByteCount(-5) == .zero && ByteCount(.min) == .zero)
        #expect(ByteCount.mebibytes(2) > .megabytes(2))
    }
}
