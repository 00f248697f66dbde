import Foundation
import Testing

import VitrineServer

/// Compares with `libthumbor`, whose results `Server/Tests/thumbor-oracle` writes. `VITRINE_THUMBOR_CASES` names a file
/// of more cases than those in the repository.
@Suite struct GrammarOracleTests {
    private struct Case: Decodable {
        struct Crop: Decodable, Equatable { let left, top, right, bottom: Int }

        /// A number of pixels or `orig`.
        struct Side: Decodable, Equatable {
            let text: String

            init(text: String) { self.text = text }

            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                text = try (try? value.decode(Int.self)).map { String($0) } ?? value.decode(String.self)
            }

            init(_ side: ThumborPath.Side) {
                switch side {
                case .pixels(let pixels): text = String(pixels)
                case .original: text = "orig"
                }
            }
        }

        struct Parts: Decodable, Equatable {
            var debug, meta, adaptive, full, fit_in, horizontal_flip, vertical_flip, smart: Bool
            var trim: String?
            var crop: Crop
            var width, height: Side
            var halign, valign, filters, image: String
        }

        let path: String
        /// The signature by `CryptoURL` with the key `my-security-key`.
        let signature: String
        /// Nil if the library finds no image.
        let parsed: Parts?
        /// Of URLs that `CryptoURL.generate` composed: the options it was given, as the parts they become.
        let composed: Bool
    }

    private func parts(_ path: ThumborPath) -> Case.Parts {
        Case.Parts(
            debug: path.debug, meta: path.meta, adaptive: path.adaptive, full: path.full, fit_in: path.fitIn,
            horizontal_flip: path.horizontalFlip, vertical_flip: path.verticalFlip, smart: path.smart,
            trim: path.trim.map { String($0) },
            crop: Case.Crop(left: path.crop[0], top: path.crop[1], right: path.crop[2], bottom: path.crop[3]),
            width: Case.Side(path.width), height: Case.Side(path.height), halign: String(path.halign),
            valign: String(path.valign), filters: String(path.filters), image: String(path.image))
    }

    private func compare(_ file: URL) throws -> Int {
        let signer = URLSigner(pairs: [(key: Array("my-security-key".utf8), salt: [])], algorithm: .thumborSHA1)
        var count = 0
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            let expected = try JSONDecoder().decode(Case.self, from: Data(line.utf8))
            let actual = ThumborPath(expected.path[...]).map(parts)
            // Records differences only: an expectation for each of many cases would take most of the time.
            if actual != expected.parsed {
                Issue.record("\(expected.path)\n\(String(describing: actual))\n\(String(describing: expected.parsed))")
            }
            if signer.sign("/\(expected.path)") != expected.signature
                || !signer.isValid(expected.signature[...], for: "/\(expected.path)") {
                Issue.record("signature of \(expected.path)")
            }
            // URLs of the library's composer are whole requests: each is read or names what is not supported.
            if expected.composed { checkRequest(expected.path) }
            count += 1
        }
        return count
    }

    private func checkRequest(_ path: String) {
        do {
            _ = try ThumborGrammar().parse(path[...])
        } catch {
            let codes = ["unsupported-option", "unknown-option", "invalid-argument"]
            if !codes.contains(error.code) { Issue.record("\(path): \(error)") }
        }
    }

    @Test func partsAgreeWithTheLibrary() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        #expect(try compare(folder.appendingPathComponent("Fixtures/thumbor-cases.jsonl")) == 120)
    }

    @Test(.enabled(if: ProcessInfo.processInfo.environment["VITRINE_THUMBOR_CASES"] != nil))
    func partsOfGivenCasesAgreeWithTheLibrary() throws {
        let path = try #require(ProcessInfo.processInfo.environment["VITRINE_THUMBOR_CASES"])
        let count = try compare(URL(fileURLWithPath: path))
        #expect(count > 0)
        print("\(count) paths agree with libthumbor.")
    }
}
