import Foundation
import Testing

import VitrineServer

@Suite struct GrammarSignatureTests {
    private let first = (key: Array("test-key".utf8), salt: Array("test-salt".utf8))
    private let second = (key: Array("test-key2".utf8), salt: Array("test-salt2".utf8))
    /// Of `/asd`, by imgproxy.
    private let signature = "oWaL7QoW5TsgbuiS9-5-DI8S3Ibbo1gdB2SteJh3a20"

    @Test func knownSignaturesAreMade() {
        #expect(URLSigner(pairs: [first]).sign("/asd") == signature)
        #expect(URLSigner(pairs: [first], size: 8).sign("/asd") == "oWaL7QoW5Ts")
        #expect(URLSigner(pairs: [second]).sign("/asd") == "jYz1UZ7j1BCdSzH3pZhaYf0iuz0vusoOTdqJsUT6WXI")
        #expect(URLSigner(pairs: []).sign("/asd").isEmpty)
    }

    @Test func everyPairIsAccepted() {
        let signer = URLSigner(pairs: [first, second])
        #expect(signer.hasKeys)
        #expect(signer.sign("/asd") == signature)
        #expect(signer.isValid(signature[...], for: "/asd"))
        #expect(signer.isValid("jYz1UZ7j1BCdSzH3pZhaYf0iuz0vusoOTdqJsUT6WXI", for: "/asd"))
        #expect(!URLSigner(pairs: [second]).isValid(signature[...], for: "/asd"))
    }

    @Test func truncatedSignaturesHaveExactlyTheirSize() {
        let signer = URLSigner(pairs: [first], size: 8)
        #expect(signer.isValid("oWaL7QoW5Ts", for: "/asd"))
        for wrong in [signature, "oWaL7QoW5T", "oWaL7QoW5TsA", "oWaL7QoW5Ts=", "oWaL7QoW5Tt"] {
            #expect(!signer.isValid(wrong[...], for: "/asd"), "\(wrong)")
        }
        #expect(URLSigner(pairs: [first], size: 0).sign("/asd").count == 2)
        #expect(URLSigner(pairs: [first], size: 99).sign("/asd") == signature)
    }

    @Test func everyChangedCharacterIsRefused() {
        let signer = URLSigner(pairs: [first])
        for index in signature.indices {
            var wrong = signature
            wrong.replaceSubrange(index...index, with: signature[index] == "A" ? "B" : "A")
            #expect(!signer.isValid(wrong[...], for: "/asd"))
        }
        for wrong in ["", "=", "insecure", "unsafe", signature + "=", signature + "A", String(signature.dropLast())] {
            #expect(!signer.isValid(wrong[...], for: "/asd"), "\(wrong)")
        }
        for path in ["/asd/", "/asD", "asd", "//asd", "", "/as", "/asd%20"] {
            #expect(!signer.isValid(signature[...], for: path[...]), "\(path)")
        }
    }

    @Test func signersWithoutKeysAcceptNothing() {
        let signer = URLSigner(pairs: [])
        #expect(!signer.hasKeys)
        for text in ["", "insecure", signature] { #expect(!signer.isValid(text[...], for: "/asd")) }
    }

    @Test func trustedTextsReplaceSignatures() {
        let signer = URLSigner(pairs: [first], trusted: ["yes", "also"])
        for text in ["yes", "also", signature] { #expect(signer.isValid(text[...], for: "/asd")) }
        for text in ["ye", "yess", "no", ""] { #expect(!signer.isValid(text[...], for: "/asd")) }
    }

    @Test func queriesAreNotSigned() {
        #expect(URLSigner(pairs: [first]).isValid(signature[...], for: "/asd?utm=1"))
    }

    @Test func mergedSlashesKeepTheSignature() {
        let signer = URLSigner(pairs: [first])
        let signed = signer.sign("/w:1/plain/http://a.example/b.jpg")[...]
        #expect(signer.isValid(signed, for: "/w:1/plain/http:/a.example/b.jpg"))
        #expect(signer.isValid(signer.sign("/plain/local:///b.jpg")[...], for: "/plain/local:/b.jpg"))
        #expect(!signer.isValid(signed, for: "/w:1/plain/http:///a.example/b.jpg"))
        #expect(!signer.isValid(signed, for: "/w:1/plain/http:/a.example//b.jpg"))
    }

    @Test func placeholdersAreNoOptions() {
        for text in ["insecure", "_", "unsafe", signature] {
            #expect(throws: Never.self) { try URLSigner.checkPlaceholder(text[...]) }
        }
        for text in ["", "rs:fit:1:1", "rs%3Afit"] {
            #expect { try URLSigner.checkPlaceholder(text[...]) } throws: {
                ($0 as? RequestError)?.code == "malformed-path"
            }
        }
    }

    /// Made by libthumbor 2.0.2, `CryptoURL("my-security-key")`.
    @Test func thumborSignaturesAreThoseOfItsLibrary() {
        let signer = URLSigner(
            pairs: [(key: Array("my-security-key".utf8), salt: [])], algorithm: .thumborSHA1)
        let signature = "0LcBCBrD8827MmzMx71CcK4XmRE="
        let path = "/300x200/smart/filters:quality(80)/my.server.com/a/b.jpg"
        #expect(signer.sign(path) == signature)
        #expect(signer.isValid(signature[...], for: path[...]))
        #expect(signer.isValid("\(signature.dropLast())%3D", for: path[...]))
        #expect(!signer.isValid(signature.dropLast(), for: path[...]))
        #expect(!signer.isValid(signature[...], for: "\(path)?x=1"))
        #expect(!signer.isValid("unsafe", for: path[...]))
    }

    @Test func keysAreHexadecimal() {
        #expect(URLSigner.bytes(hex: "736563726574") == Array("secret".utf8))
        #expect(URLSigner.bytes(hex: "aAfF00") == [0xAA, 0xFF, 0])
        #expect(URLSigner.bytes(hex: "") == [])
        for wrong in ["7", "7g", "0x12", "12 4", "é1"] { #expect(URLSigner.bytes(hex: wrong) == nil, "\(wrong)") }
    }
}
