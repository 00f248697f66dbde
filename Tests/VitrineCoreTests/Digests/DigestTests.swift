import Testing
import VitrineCompatibility
import VitrineCore

struct DigestTests {
    @Test func sha256MatchesTheStandardsVectors() {
        // FIPS 180-4 examples (NIST CSRC, "SHA256.pdf").
        #expect(FileName.sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(FileName.sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            FileName.sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    }

    @Test func sha256OfAMillionLettersInPieces() {
        var digest = SHA256Digest()
        let pieces = [1, 63, 64, 65, 127, 1000]
        var written = 0, index = 0
        while written < 1_000_000 {
            let count = min(pieces[index % pieces.count], 1_000_000 - written)
            digest.update([UInt8](repeating: UInt8(ascii: "a"), count: count))
            written += count
            index += 1
        }
        #expect(digest.hexadecimal == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func md5MatchesTheStandardsVectors() {
        // RFC 1321, appendix A.5.
        let vectors = [
            "": "d41d8cd98f00b204e9800998ecf8427e",
            "a": "0cc175b9c0f1b6a831c399e269772661",
            "abc": "900150983cd24fb0d6963f7d28e17f72",
            "message digest": "f96b697d7cb7938d525a2f31aaf161d0",
            "abcdefghijklmnopqrstuvwxyz": "c3fcd3d76192e4007dfb496cca67e13b",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "d174ab98d277d9f5a5611c2c9f419d9f",
            String(repeating: "1234567890", count: 8): "57edf4a22be3c955ac49da2e2107b67a",
            "Haneke": "aaf750bf2c41f921d0f5c1e9ba36f6f4",
            "http://haneke.io": "e7bbf4e61be4fe99e3dd95f99b666aa0",
        ]
        for (text, digest) in vectors { #expect(FileName.md5(text) == digest) }
    }

    @Test func readingADigestDoesNotEndTheStream() {
        var digest = MD5Digest()
        digest.update(Array("a".utf8))
        #expect(digest.hexadecimal == "0cc175b9c0f1b6a831c399e269772661")
        digest.update(Array("bc".utf8))
        #expect(digest.hexadecimal == "900150983cd24fb0d6963f7d28e17f72")
    }

    @Test func everyPaddingLengthEqualsByteWiseHashing() {
        for count in 0...200 {
            let bytes = (0..<count).map { UInt8($0) }
            var sha = SHA256Digest(), md5 = MD5Digest()
            for byte in bytes {
                sha.update([byte])
                md5.update([byte])
            }
            #expect(sha.bytes == SHA256Digest.digest(of: bytes))
            #expect(md5.bytes == MD5Digest.digest(of: bytes))
        }
    }
}
