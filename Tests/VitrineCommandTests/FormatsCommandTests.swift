import Foundation
import TestSupport
import Testing
import VitrineCommand

@Suite struct FormatsCommandTests {
    private func kinds(_ environment: [String: String] = [:]) async throws -> [String: [String: Any]] {
        let outcome = try await Tool.run(["formats", "--json"], environment: environment)
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        let pairs = outcome.objects.compactMap { object in (object["name"] as? String).map { ($0, object) } }
        #expect(Set(pairs.map(\.0)).count == pairs.count && pairs.count == outcome.objects.count)
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    private func readers(_ kind: [String: Any]?) -> [[String: Any]] { kind?["readers"] as? [[String: Any]] ?? [] }

    @Test func everyKindIsToldWithItsReadersAndProcesses() async throws {
        let kinds = try await kinds()
        for name in ["jpeg", "svg", "nef", "cr3", "dng", "raf", "pdf", "mp4", "flac-audio", "web-page", "epub", "cbz"] {
            let kind = try #require(kinds[name], "\(name)")
            #expect(
                Set(kind.keys)
                    == ["name", "title", "group", "mediaTypes", "extensions", "readers", "isOutput", "missing"])
            #expect(!readers(kind).isEmpty && (kind["mediaTypes"] as? [String])?.isEmpty == false)
            for reader in readers(kind) { #expect(Set(reader.keys) == ["method", "library", "process", "option"]) }
        }
        #expect(readers(kinds["jpeg"]).map { $0["library"] as? String } == ["libjpeg", nil])
        #expect(kinds["jxl"]?["title"] as? String == "JPEG XL" && kinds["jxl"]?["isOutput"] as? Bool == true)
        #expect(kinds["tiff"]?["group"] as? String == "image" && kinds["tiff"]?["isOutput"] as? Bool == false)
        #expect(kinds["nef"]?["group"] as? String == "raw" && kinds["epub"]?["group"] as? String == "document")
        #expect(readers(kinds["nef"])[0]["method"] as? String == "embedded image")
        #expect(readers(kinds["nef"])[0]["process"] as? String == "vitrine")
        #expect(readers(kinds["nef"])[1]["library"] as? String == "LibRaw")
        #expect(readers(kinds["nef"])[1]["option"] as? String == "--develop-raw")
        #expect(readers(kinds["png"])[0]["method"] as? String == "decoder")
        #expect(readers(kinds["png"])[0]["library"] is NSNull)
        #expect(readers(kinds["svg"])[0]["library"] as? String == "libvips")
        #expect(readers(kinds["svg"])[0]["process"] as? String == "vitrine-worker")
        #expect(readers(kinds["pdf"])[0]["process"] as? String == "vitrine-pdf")
        #expect((kinds["cr2"]?["extensions"] as? [String]) == ["cr2"])
        #expect(readers(kinds["cbr"]).map { $0["process"] as? String } == ["vitrine", "vitrine-worker"])
        #expect(readers(kinds["cb7"]).map { $0["library"] as? String } == ["libarchive"])
        #expect(
            readers(kinds["wav-audio"]).map { $0["process"] as? String }
                == ["vitrine", "vitrine-video", "vitrine-video"])
        #expect(readers(kinds["wav-audio"]).last?["option"] as? String == "--waveform")
        #expect(readers(kinds["heic"]).map { $0["library"] as? String } == [nil, "libheif"])
        #expect(readers(kinds["heic"]).map { $0["process"] as? String } == ["vitrine", "vitrine-worker"])
        #expect(readers(kinds["avif"]).map { $0["library"] as? String } == ["libavif", "libheif"])
        for name in ["exr", "dds", "font", "text", "psd", "cbt", "mobi", "fb2"] {
            #expect(!readers(kinds[name]).isEmpty, "\(name)")
        }
        for name in ["jpeg", "png", "nef", "gif"] { #expect(kinds[name]?["missing"] as? [String] == [], "\(name)") }
        #expect(kinds["svg"]?["missing"] as? [String] == [])
    }

    @Test func missingHelpersAreNamed() async throws {
        let scratch = try Scratch()
        let none = scratch.file("none").path
        let kinds = try await kinds([
            "VITRINE_WORKER": none, "VITRINE_PDF": none, "VITRINE_VIDEO": none, "VITRINE_BROWSER": none,
        ])
        for (name, program) in [
            ("svg", "vitrine-worker"), ("pdf", "vitrine-pdf"), ("mp4", "vitrine-video"), ("web-page", "chromium"),
        ] { #expect(kinds[name]?["missing"] as? [String] == [program], "\(name)") }
        #expect(kinds["wav-audio"]?["missing"] as? [String] == ["vitrine-video"])
        #expect(kinds["jpeg"]?["missing"] as? [String] == [] && kinds["nef"]?["missing"] as? [String] == [])
        let text = try await Tool.run(["formats"], environment: ["VITRINE_PDF": none])
        #expect(text.output.contains("; missing: vitrine-pdf\n"))
    }

    @Test func textHasALineForEachKind() async throws {
        let text = try await Tool.run(["formats"])
        let lines = text.output.split(separator: "\n")
        #expect(lines.count == (try await kinds()).count)
        #expect(lines.contains { $0.hasPrefix("nef") && $0.contains(".nef .nrw") && $0.contains("embedded image") })
        #expect(lines.contains { $0.hasPrefix("tiff") && $0.contains("libvips in vitrine-worker") })
    }

    @Test func theHelpNamesEveryFormatOfTheCodecs() async throws {
        let help = try await Tool.run(["help", "formats"])
        // Lines are broken at spaces.
        let text = help.output.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
        let lists = [
            FormatNames.images, FormatNames.raw, FormatNames.documents, FormatNames.videos, FormatNames.recordings,
            FormatNames.outputs,
        ]
        for list in lists {
            #expect(list.count > 5)
            for name in list { #expect(text.contains(name), "\(name)") }
        }
        #expect(FormatNames.images.contains("JPEG XL") && FormatNames.raw.contains("CR3"))
        #expect(FormatNames.outputs.contains("JPEG XL (jxl)"))
    }

    @Test func theReadMeNamesEveryImageFormatOfTheCodecs() throws {
        let file = Samples.directory.deletingLastPathComponent().appending(path: "README.md")
        let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("|") }
        for name in FormatNames.images { #expect(rows.contains { $0.contains(name) }, "\(name)") }
    }
}
