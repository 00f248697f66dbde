import Testing
import VitrineCore

@Suite struct PercentEncodingTests {
    @Test(arguments: [
        ("a%20b", "a b", true), ("%e2%82%AC", "\u{20AC}", true), ("", "", true), ("100%", "100%", false),
        ("%4", "%4", false), ("%zz%41", "%zzA", false), ("%+f", "%+f", false), ("%%41", "%A", false), ("%2541", "%41", true),
    ])
    func escapesAreDecodedOnce(text: String, decoded: String, isValid: Bool) {
        #expect(PercentEncoding.decoded(text.utf8) == Array(decoded.utf8))
        #expect(PercentEncoding.validated(text.utf8) == (isValid ? Array(decoded.utf8) : nil))
    }
}
