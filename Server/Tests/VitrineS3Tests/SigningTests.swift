import Foundation
import Testing
import VitrineCore
import VitrineS3

/// The vectors are Amazon's: the examples of the S3 API Reference, "Authenticating Requests", and the test suite of
/// Signature Version 4.
struct SigningTests {
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let may24 = Duration.seconds(1_369_353_600)
    private static let example = S3Credentials(
        accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

    struct Vector: Sendable {
        var method = "GET"
        var path = "/"
        var query: [(name: String, value: String)] = []
        var headers: [(name: String, value: String)] = []
        var hash = SigningTests.empty
        var names: String
        var signature: String
    }

    @Test(
        "The signer reproduces the examples of the S3 API Reference",
        arguments: [
            Vector(
                path: "/test.txt", headers: [("Range", "bytes=0-9")],
                names: "host;range;x-amz-content-sha256;x-amz-date",
                signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            Vector(
                method: "PUT", path: "/test%24file.text",
                headers: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
                hash: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
                names: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            Vector(
                query: [("lifecycle", "")], names: "host;x-amz-content-sha256;x-amz-date",
                signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            Vector(
                query: [("prefix", "J"), ("max-keys", "2")], names: "host;x-amz-content-sha256;x-amz-date",
                signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
        ])
    func signsExamplesOfTheReference(vector: Vector) {
        let headers = vector.headers + [("x-amz-content-sha256", vector.hash), ("x-amz-date", "20130524T000000Z")]
        let request = RequestSigner.Request(
            method: vector.method, host: "examplebucket.s3.amazonaws.com", path: vector.path, query: vector.query,
            headers: headers)
        let value = RequestSigner(Self.example, region: "us-east-1")
            .authorization(for: request, payloadHash: vector.hash, at: Self.may24)
        #expect(
            value == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=\(vector.names), Signature=\(vector.signature)")
    }

    @Test("The signer reproduces the example of a URL in the S3 API Reference")
    func signsTheURLOfTheReference() {
        let request = RequestSigner.Request(
            method: "GET", host: "examplebucket.s3.amazonaws.com", path: "/test.txt")
        let query = RequestSigner(Self.example, region: "us-east-1")
            .presignedQuery(for: request, seconds: 86_400, at: Self.may24)
        #expect(
            query == "X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    private static let unreserved =
        "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    @Test(
        "The signer passes the test suite of Signature Version 4",
        arguments: [
            Vector(
                names: "host;x-amz-date",
                signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            Vector(
                query: [("Param2", "value2"), ("Param1", "value1")], names: "host;x-amz-date",
                signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
            Vector(
                query: [("Param1", "value2"), ("Param1", "Value1")], names: "host;x-amz-date",
                signature: "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"),
            Vector(
                query: [(unreserved, unreserved)], names: "host;x-amz-date",
                signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
            Vector(
                method: "POST", names: "host;x-amz-date",
                signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            Vector(
                headers: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
                names: "host;my-header1;my-header2;x-amz-date",
                signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736")
        ])
    func passesTheTestSuite(vector: Vector) {
        let credentials = S3Credentials(
            accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        let request = RequestSigner.Request(
            method: vector.method, host: "example.amazonaws.com", path: vector.path, query: vector.query,
            headers: vector.headers + [("X-Amz-Date", "20150830T123600Z")])
        let value = RequestSigner(credentials, region: "us-east-1", service: "service")
            .authorization(for: request, payloadHash: vector.hash, at: .seconds(1_440_938_160))
        #expect(value.hasSuffix("SignedHeaders=\(vector.names), Signature=\(vector.signature)"))
    }

    @Test("Digests are those of SHA-256")
    func digestsAreSHA256() {
        #expect(RequestSigner.digest([]) == Self.empty)
        #expect(
            RequestSigner.digest(Array("Welcome to Amazon S3.".utf8))
                == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
    }

    @Test("Credentials do not print their secrets")
    func credentialsHideSecrets() {
        let credentials = S3Credentials(accessKey: "public", secretKey: "hidden1", sessionToken: "hidden2")
        var dumped = ""
        dump(S3CredentialSource.first([.fixed(credentials)]), to: &dumped)
        for text in ["\(credentials)", String(reflecting: credentials), dumped] {
            #expect(text.contains("public"))
            #expect(!text.contains("hidden"))
        }
    }

    // MARK: Dates

    @Test("Dates of all forms are read and written")
    func datesAreReadAndWritten() {
        #expect(S3Time.stamp(.seconds(1_369_353_600)) == "20130524T000000Z")
        #expect(S3Time.stamp(.seconds(951_827_696)) == "20000229T123456Z")
        #expect(S3Time.stamp(.seconds(-1)) == "19691231T235959Z")
        #expect(S3Time.parse(iso: "2013-05-24T00:00:00Z") == .seconds(1_369_353_600))
        #expect(S3Time.parse(iso: "2013-05-24T00:00:00.25Z") == .milliseconds(1_369_353_600_250))
        #expect(S3Time.parse(iso: "20130524T000000Z") == .seconds(1_369_353_600))
    }

    @Test(
        "Malformed dates are refused",
        arguments: [
            "", "2013-05-24", "2013-13-24T00:00:00Z", "2013-02-29T00:00:00Z", "2013-05-24T24:00:00Z",
            "2013-05-24T00:00:00.Z", "2013-05-24T00:00:00", "2013-05-24T00:00:00Z ", "+013-05-24T00:00:00Z",
            "Fri, 24 May 2013 00:00:00 GMT", "-1"
        ])
    func malformedDatesAreRefused(text: String) {
        #expect(S3Time.parse(iso: text) == nil)
    }

    @Test("Stamps of random times are read as the same times, and changed ones never trap")
    func randomDatesRoundTrip() {
        var random = SeededGenerator(state: 20)
        for _ in 0..<5_000 {
            let time = Duration.seconds(Int64.random(in: -62_000_000_000...200_000_000_000, using: &random))
            let stamp = S3Time.stamp(time)
            #expect(S3Time.parse(iso: stamp) == time)
            var bytes = Array(stamp.utf8)
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0x20..<0x7F, using: &random)
            _ = S3Time.parse(iso: String(decoding: bytes, as: UTF8.self))
        }
    }
}
