import Foundation
import Testing
import VitrineCore

struct CacheKeyTests {
    @Test func partsAreNeverJoined() {
        #expect(CacheKey("a", "b") != CacheKey("ab"))
        #expect(CacheKey("a", "b") != CacheKey("a:b"))
        #expect(CacheKey("a", "bc") != CacheKey("ab", "c"))
        #expect(CacheKey("a", "") != CacheKey("a"))
        #expect(CacheKey("", "a") != CacheKey("a", ""))
        #expect(CacheKey(parts: []) != CacheKey(""))
        #expect(CacheKey("1:a", "b") != CacheKey("a", "1:b"))
    }

    @Test func appendingEqualsMakingAtOnce() {
        #expect(CacheKey("a").appending("b") == CacheKey("a", "b"))
        #expect(CacheKey("a").appending("b").appending("c") == CacheKey("a", "b", "c"))
        #expect(CacheKey(parts: ["a"]) == CacheKey("a"))
        #expect(CacheKey("a").appending("b").hash == CacheKey("a", "b").hash)
    }

    @Test func appendingTwoPartsEqualsAppendingThemOneByOne() {
        let lengths = [0, 1, 9, 10, 11, 99, 100, 101, 1_000]
        let texts = lengths.map { String(repeating: "x", count: $0) } + ["é:1", "\u{1F}x", "日本語の長い名前"]
        for first in texts {
            for second in texts {
                for key in [CacheKey(first), CacheKey(second, "b")] {
                    let both = key.appending(first, second)
                    #expect(both.parts == key.parts + [first, second])
                    #expect(both == key.appending(first).appending(second))
                    #expect(both.identity == CacheKey(parts: both.parts).identity)
                    #expect(both.hash == CacheKey(parts: both.parts).hash)
                }
            }
        }
    }

    @Test func textThatLooksLikeSeveralPartsStaysOne() {
        let imitation = CacheKey("a", "b").identity
        #expect(CacheKey(imitation) != CacheKey("a", "b"))
        #expect(CacheKey(imitation).parts == [imitation])
        #expect(CacheKey(imitation).appending("c").parts == [imitation, "c"])
    }

    @Test func partsComeBack() {
        for parts in [["a"], ["a", "b"], ["", ""], ["é:1", "\u{1F}x", "日本"], []] {
            #expect(CacheKey(parts: parts).parts == parts)
        }
        #expect(CacheKey(identity: "\u{1F}99999999999999999999:a").parts == ["\u{1F}99999999999999999999:a"])
        #expect(CacheKey(identity: "\u{1F}5:ab").parts == ["\u{1F}5:ab"])
    }

    @Test func canonicallyEquivalentTextsAreDifferentKeys() {
        #expect("\u{E9}" == "e\u{301}")
        #expect(CacheKey("\u{E9}") != CacheKey("e\u{301}"))
    }

    @Test func identityRestoresTheKey() {
        let key = CacheKey("https://example.org/a.jpg", "320x240")
        #expect(CacheKey(identity: key.identity) == key)
    }

    @Test func describesItsParts() {
        #expect(CacheKey("a", "b").description == "a | b")
        let literal: CacheKey = "a"
        #expect("\(literal)" == "a")
    }
}
