import Foundation
import NIOCore
import VitrineImaging
import VitrinePipeline

/// The facts of a source that documents of IIIF tell, which are cached like an image.
struct SourceFacts: Codable, Sendable, Hashable {
    var kind: SourceHeader.Kind
    var mediaType: String
    var width: Int
    var height: Int
    var pages: Int

    init(_ header: SourceHeader) {
        let header = header.ofIIIF
        (kind, mediaType, pages) = (header.kind, header.mediaType, header.pageCount)
        (width, height) = (header.size.width, header.size.height)
    }
}

/// Makes the documents of IIIF.
struct IIIFDocuments: Sendable {
    /// The side of a tile.
    static let tileSide = 512
    /// The most canvases of a manifest.
    static let mostCanvases = 1_000

    private let grammar: IIIFGrammar
    private let renderer: Renderer
    private let deadline: ContinuousClock.Instant

    init(_ grammar: IIIFGrammar, _ renderer: Renderer, deadline: ContinuousClock.Instant) {
        (self.grammar, self.renderer, self.deadline) = (grammar, renderer, deadline)
    }

    func answer(_ document: IIIFDocument) async throws(RequestError) -> ImageAnswer {
        let value: SettingValue
        switch document.kind {
        case .information(let version):
            let facts = try await facts(of: document.identifier)
            let address = "\(document.base)/\(version.rawValue)/\(document.identifier)"
            value = .table(version == .three ? information(address, facts) : oldInformation(address, facts))
        case .manifest: value = try await manifest(document)
        }
        let text = value.json + "\n"
        var metadata = ImageResult.Metadata(
            mediaType: "application/json", entityTag: ContentVersion.text(of: Array(text.utf8)))
        // Files come and go, so that no cache is to keep it for long.
        metadata.isProvisional = true
        return ImageAnswer(ImageResult(bytes: ByteBuffer(string: text), metadata: metadata), .made)
    }

    private func facts(of identifier: Substring, page: Int? = nil) async throws(RequestError) -> SourceFacts {
        let url = try grammar.url(of: identifier, page: page)
        let rendering = try await renderer.headerDocument(for: url, deadline: deadline)
        let data = Data(rendering.image.bytes.readableBytesView)
        guard let facts = try? JSONDecoder().decode(SourceFacts.self, from: data) else { throw .notAnImage }
        return facts
    }

    // MARK: Information

    private static func reduced(_ side: Int, _ factor: Int) -> Int { (side + factor - 1) / factor }

    private func factors(_ facts: SourceFacts) -> [Int] {
        var factors = [1]
        while let last = factors.last, max(facts.width, facts.height) > last * Self.tileSide {
            factors.append(last * 2)
        }
        return factors
    }

    /// Reductions by powers of two, the smallest first.
    private func sizes(_ facts: SourceFacts) -> SettingValue {
        let sizes = factors(facts).reversed().map { factor in
            (width: Self.reduced(facts.width, factor), height: Self.reduced(facts.height, factor))
        }
        return .list(
            sizes.filter { max($0.width, $0.height) <= grammar.longestSide }.map { size in
                .table(["width": .integer(size.width), "height": .integer(size.height)])
            })
    }

    private func tiles(_ facts: SourceFacts) -> SettingValue {
        .list([
            .table([
                "width": .integer(Self.tileSide), "scaleFactors": .list(factors(facts).map { .integer($0) }),
            ])
        ])
    }

    private func common(_ facts: SourceFacts) -> [String: SettingValue] {
        [
            "protocol": .text("http://iiif.io/api/image"), "width": .integer(facts.width),
            "height": .integer(facts.height), "sizes": sizes(facts), "tiles": tiles(facts),
        ]
    }

    private static func texts(_ texts: [String]) -> SettingValue { .list(texts.map { .text($0) }) }

    private static let extraFormats = IIIFParameters.formats.map(\.name).filter { $0 != "jpg" && $0 != "png" }

    private func information(_ address: String, _ facts: SourceFacts) -> [String: SettingValue] {
        var values = common(facts)
        values["@context"] = .text("http://iiif.io/api/image/3/context.json")
        values["id"] = .text(address)
        values["type"] = .text("ImageService3")
        values["profile"] = .text("level2")
        values["maxWidth"] = .integer(grammar.longestSide)
        values["maxHeight"] = .integer(grammar.longestSide)
        values["preferredFormats"] = Self.texts(["webp", "jpg"])
        values["extraFormats"] = Self.texts(Self.extraFormats)
        values["extraQualities"] = Self.texts(["bitonal", "color", "gray"])
        values["extraFeatures"] = Self.texts([
            "canonicalLinkHeader", "mirroring", "profileLinkHeader", "sizeUpscaling",
        ])
        return values
    }

    private func oldInformation(_ address: String, _ facts: SourceFacts) -> [String: SettingValue] {
        var values = common(facts)
        values["@context"] = .text("http://iiif.io/api/image/2/context.json")
        values["@id"] = .text(address)
        values["profile"] = .list([
            .text("http://iiif.io/api/image/2/level2.json"),
            .table([
                "formats": Self.texts(Self.extraFormats), "qualities": Self.texts(["bitonal", "color", "gray"]),
                "maxWidth": .integer(grammar.longestSide), "maxHeight": .integer(grammar.longestSide),
                "supports": Self.texts([
                    "canonicalLinkHeader", "mirroring", "profileLinkHeader", "regionSquare", "sizeAboveFull",
                ]),
            ]),
        ])
        return values
    }

    // MARK: Manifests

    private struct Canvas: Sendable {
        var identifier: String
        var label: String
        var facts: SourceFacts
    }

    private func manifest(_ document: IIIFDocument) async throws(RequestError) -> SettingValue {
        let place = document.identifier.isEmpty ? "" : "\(document.identifier)/"
        let address = "\(document.base)/presentation/3/\(place)manifest"
        let path = String(document.identifier).removingPercentEncoding ?? ""
        let label = path.split(separator: "/").last.map(String.init) ?? "/"
        let canvases: [Canvas]
        if grammar.hasLocalRoot, !path.contains("://"), let names = try await renderer.sources.names(inFolder: path) {
            canvases = try await self.canvases(names, inFolder: path)
        } else {
            canvases = try await pages(of: document.identifier, label)
        }
        return .table([
            "@context": .text("http://iiif.io/api/presentation/3/context.json"), "id": .text(address),
            "type": .text("Manifest"), "label": Self.label(label),
            "items": .list(
                canvases.enumerated().map { canvas($1, address: "\(address)/canvas/\($0 + 1)", base: document.base) })
        ])
    }

    private func pages(of identifier: Substring, _ label: String) async throws(RequestError) -> [Canvas] {
        guard !identifier.isEmpty else { throw .sourceNotFound }
        let first = try await facts(of: identifier)
        // Frames of an animation are no pages.
        guard first.kind == .document, first.pages > 1 else {
            return [Canvas(identifier: String(identifier), label: label, facts: first)]
        }
        var canvases = [Canvas(identifier: "\(identifier);1", label: "1", facts: first)]
        for page in 2...min(first.pages, Self.mostCanvases) {
            let facts = try await facts(of: identifier, page: page)
            canvases.append(Canvas(identifier: "\(identifier);\(page)", label: String(page), facts: facts))
        }
        return canvases
    }

    /// The images of a folder; other files are left out.
    private func canvases(_ names: [String], inFolder path: String) async throws(RequestError) -> [Canvas] {
        var canvases: [Canvas] = []
        for name in names {
            if canvases.count == Self.mostCanvases { break }
            if Task.isCancelled { throw .cancelled }
            let whole = path.split(separator: "/").map(String.init) + [name]
            let identifier = whole.map { IIIFGrammar.encoded($0) }.joined(separator: "%2F")
            do throws(RequestError) {
                let facts = try await facts(of: Substring(identifier))
                if facts.kind == .image { canvases.append(Canvas(identifier: identifier, label: name, facts: facts)) }
            } catch where [404, 413, 422].contains(error.status) {}
        }
        return canvases
    }

    private static func label(_ text: String) -> SettingValue { .table(["none": .list([.text(text)])]) }

    private func canvas(_ canvas: Canvas, address: String, base: String) -> SettingValue {
        let service = "\(base)/3/\(canvas.identifier)"
        let sides: [String: SettingValue] = [
            "width": .integer(canvas.facts.width), "height": .integer(canvas.facts.height),
        ]
        let services: SettingValue = .list([
            .table(["id": .text(service), "type": .text("ImageService3"), "profile": .text("level2")])
        ])
        func image(_ size: String) -> [String: SettingValue] {
            [
                "id": .text("\(service)/full/\(size)/0/default.jpg"), "type": .text("Image"),
                "format": .text("image/jpeg"), "service": services,
            ]
        }
        let annotation: [String: SettingValue] = [
            "id": .text("\(address)/annotation"), "type": .text("Annotation"), "motivation": .text("painting"),
            "target": .text(address), "body": .table(image("max").merging(sides) { $1 }),
        ]
        let page: [String: SettingValue] = [
            "id": .text("\(address)/page"), "type": .text("AnnotationPage"), "items": .list([.table(annotation)]),
        ]
        let values: [String: SettingValue] = [
            "id": .text(address), "type": .text("Canvas"), "label": Self.label(canvas.label),
            "items": .list([.table(page)]), "thumbnail": .list([.table(image("!256,256"))]),
        ]
        return .table(values.merging(sides) { $1 })
    }
}
