import Foundation
import Testing
import VitrineCore

struct ErrorTextTests {
    private struct Failure: Error {}

    private struct Explained: LocalizedError {
        var errorDescription: String? { "The disk is gone.\n  Attach it.\n" }
    }

    private struct Prefixed: Error, CustomStringConvertible {
        var description: String { "lake: it is empty" }
    }

    @Test func nestedErrorsLeaveOutTheInputOfTheOuterOne() {
        let error = FileError.notFound(path: "/data/lake.jpg")
        #expect(ErrorText.nested(error, about: "/data/lake.jpg") == "it does not exist")
        #expect(ErrorText.nested(error, about: "thumbnail of /data/lake.jpg") == "it does not exist")
        #expect(ErrorText.nested(error, about: "lake") == "/data/lake.jpg does not exist")
        #expect(ErrorText.nested(Prefixed(), about: "lake") == "it is empty")
        #expect(ErrorText.nested(Prefixed(), about: "river") == "lake: it is empty")
    }

    @Test func nestedErrorsAreOneLineWithoutAStop() {
        #expect(ErrorText.nested(Explained(), about: "lake") == "The disk is gone. Attach it")
        #expect(ErrorText.nested(Failure(), about: "lake") == "Failure()")
        #expect(ErrorText.nested(CancellationError(), about: "lake") == "it was cancelled")
    }

    @Test func nestedErrorsOfFoundationGiveTheirMessageWithoutTheirDictionary() {
        let absent = #expect(throws: (any Error).self) {
            _ = try FileManager.default.contentsOfDirectory(atPath: "/nowhere/at/all")
        }
        let text = absent.map { ErrorText.nested($0, about: "/nowhere/at/all") } ?? ""
        #expect(!text.isEmpty && !text.contains("/nowhere/at/all") && !text.contains("UserInfo"), "\(text)")
    }

    @Test func sentencesHaveOneStopAndAdviceIsASentenceOfItsOwn() {
        #expect(ErrorText.sentence("It failed") == "It failed.")
        #expect(ErrorText.sentence("It failed..") == "It failed.")
        #expect(ErrorText.sentence("It failed.", advice: "try again.") == "It failed. Try again.")
        #expect(ErrorText.line("it failed.", advice: "try again") == "it failed; try again")
        #expect(ErrorText.line("it failed", advice: nil) == "it failed")
    }

    @Test func inputsAreShortenedByCharacters() {
        let umlauts = String(repeating: "ü", count: 200)
        #expect(ErrorText.shortened(umlauts) == umlauts, "200 characters of two bytes")
        let longer = ErrorText.shortened(umlauts + "ü")
        #expect(longer.count == 200 && longer.hasSuffix("ü…"))
    }

    @Test func missingHelpersNameTheirProductAndPackage() {
        for (program, package) in [
            ("vitrine-pdf", "vitrine-pdf"), ("vitrine-video", "vitrine-video"), ("vitrine-text", "vitrine-text"),
            ("vitrine-worker", "vitrine"), ("vitrine-agent", "vitrine"),
        ] {
            let advice = HelperProgram.advice(for: program)
            #expect(advice.contains("the Debian package \(package),"))
            #expect(advice.contains(".product(name: \"\(program)\", package: \"vitrine\")"))
            #expect(advice.contains(HelperProgram.variable(for: program)))
        }
    }
}
