import CVitrineText
import VitrineHelperProtocol
import VitrineImaging

/// Draws letters of fonts, first pages of texts, and single lines, at the requested size.
struct TextRenderer: DocumentRendering {
    /// A page of A4, in points.
    private static let page = PointSize(width: 595, height: 842)
    private static let margin = 32.0
    /// The own size of a font's image.
    private static let specimen = PointSize(width: 512, height: 512)
    /// Fonts with more bytes are refused.
    private static let maximumFontBytes = 32 << 20
    /// Bytes of a text that are read.
    private static let maximumTextBytes = 32 << 10

    func describe(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> [UInt8] {
        throw .invalidRequest(reason: "fonts and texts have no description")
    }

    func render(_ source: ByteSource, _ request: DocumentRequest) throws(ImageError) -> DecodedImage {
        guard let parameters = TextParameters(request.parameters) else {
            throw .invalidRequest(reason: "the request is malformed")
        }
        if parameters.kind == .labels { return try labels(source, parameters.row, limits: request.limits) }
        let points = parameters.kind == .font ? Self.specimen : Self.page
        let size = try PageGeometry(points, limits: request.limits).pixels(for: parameters.target)
        let storage = PixelStorage(zeroedByteCount: size.pixelCount * 3)
        guard let pixels = storage.bytes.bindMemory(to: UInt8.self).baseAddress else {
            throw .invalidRequest(reason: "an image without pixels")
        }
        let status =
            parameters.kind == .font
            ? try drawFont(source, size: size, pixels: pixels, limits: request.limits)
            : try drawText(source, fileExtension: parameters.fileExtension, size: size, pixels: pixels)
        switch status {
        case CTEXT_OK: break
        case CTEXT_MEMORY:
            throw .limitExceeded(input: "input", limit: .memory, actual: size.pixelCount * 4, allowed: 0)
        default: throw .corrupt(input: source.name, reason: "it is no font with glyphs that can be drawn")
        }
        let plane = PixelPlane(width: size.width, height: size.height, channels: 3, storage: storage)
        return DecodedImage(planes: [plane], model: .rgb, alpha: .none)
    }

    // MARK: Fonts

    /// Letters in the order of preference: of the Latin alphabet, then of the others, then characters of fonts that
    /// have few.
    private static let samples = [
        "Aa", "Бб", "Αα", "Աա", "აბ", "אב", "عر", "ܐܒ", "अआ", "অআ", "ਅਆ", "અઆ", "ଅଆ", "அஆ", "అఆ", "ಅಆ", "അആ", "අආ",
        "กข", "ກຂ", "ཀཁ", "ကခ", "កខ", "አበ", "ꦲꦤ", "ᠠᠡ", "永", "あア", "가", "ㄅ", "Ꭰ", "ᐁ", "ᚠ", "🙂", "12", "A", "a", "1",
        "?",
    ]

    private func drawFont(
        _ source: ByteSource, size: PixelSize, pixels: UnsafeMutablePointer<UInt8>, limits: ImageLimits
    ) throws(ImageError) -> ctext_status {
        let allowed = min(Self.maximumFontBytes, limits.maximumInputBytes)
        guard source.count <= allowed else {
            throw .limitExceeded(input: source.name, limit: .inputBytes, actual: source.count, allowed: allowed)
        }
        let bytes = try source.allBytes()
        let samples: [CChar] = Self.samples.flatMap { (sample: String) -> [CChar] in Array(sample.utf8CString) } + [0]
        return bytes.withUnsafeBytes { bytes in
            samples.withUnsafeBufferPointer {
                ctext_draw_font(
                    bytes.baseAddress, bytes.count, $0.baseAddress, Int32(size.width), Int32(size.height), pixels)
            }
        }
    }

    // MARK: Texts

    private func drawText(
        _ source: ByteSource, fileExtension: String, size: PixelSize, pixels: UnsafeMutablePointer<UInt8>
    ) throws(ImageError) -> ctext_status {
        let bytes = try source.bytes(at: 0, count: Self.maximumTextBytes)
        guard !bytes.isEmpty else { throw .empty(input: source.name) }
        let lines = TextLines(PlainText.decoded(bytes))
        let markdown = ["md", "markdown", "mdown", "mkd"].contains(fileExtension.lowercased())
        let styled = markdown ? Markdown.page(lines.lines) : SourceText.page(lines.lines, fileExtension)
        // Short lines are drawn larger, as large as the page has room for the longest.
        let columns = Double(min(TextLines.columns, max(Self.fewestColumns, lines.longest)))
        let wide = (Self.page.width - 2 * Self.margin) / (columns * Self.advance)
        var text = styled.text
        return text.withUTF8 { text in
            styled.runs.withUnsafeBufferPointer { runs in
                var page = ctext_page()
                page.text = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
                page.count = text.count
                page.runs = runs.baseAddress
                page.run_count = runs.count
                page.monospaced = !markdown
                (page.width, page.height, page.margin) = (Self.page.width, Self.page.height, Self.margin)
                page.font_size = markdown ? Self.proseSize : wide
                return withUnsafePointer(to: page) {
                    ctext_draw_page($0, Int32(size.width), Int32(size.height), pixels)
                }
            }
        }
    }

    private static let fewestColumns = 44
    /// The width of a character of monospaced fonts to their size.
    private static let advance = 0.602
    private static let proseSize = 15.0

    // MARK: Labels

    /// Labels of one request.
    private static let maximumLabels = 1_024
    /// Bytes of all labels of one request.
    private static let maximumLabelBytes = 1 << 20
    /// Characters at the beginning, and at the end, of a label that are laid out. No row has room for more.
    private static let labelEnds = 400

    /// Draws each line of a text in a row of its own.
    private func labels(
        _ source: ByteSource, _ row: TextParameters.Row, limits: ImageLimits
    ) throws(ImageError) -> DecodedImage {
        guard (1...32_767).contains(row.size.width), (1...1_024).contains(row.size.height),
            row.fontSize >= 1, row.fontSize <= Double(row.size.height)
        else { throw .invalidRequest(reason: "labels of \(row.size) pixels with a font of \(row.fontSize) pixels") }
        guard source.count <= Self.maximumLabelBytes else {
            throw .limitExceeded(
                input: source.name, limit: .inputBytes, actual: source.count, allowed: Self.maximumLabelBytes)
        }
        let bytes = try source.allBytes()
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count <= Self.maximumLabels else { throw .invalidRequest(reason: "\(lines.count) labels at once") }
        let points = PointSize(width: Double(row.size.width), height: Double(row.size.height * lines.count))
        let size = try PageGeometry(points, limits: limits).pixels(for: DocumentTarget())
        let rowBytes = row.size.pixelCount * 3
        let storage = PixelStorage(zeroedByteCount: rowBytes * lines.count)
        guard let pixels = storage.bytes.bindMemory(to: UInt8.self).baseAddress else {
            throw .invalidRequest(reason: "labels without pixels")
        }
        for (index, line) in lines.enumerated() {
            guard draw(line, row, pixels: pixels + index * rowBytes) == CTEXT_OK else {
                throw .limitExceeded(input: "labels", limit: .memory, actual: size.pixelCount * 4, allowed: 0)
            }
        }
        let plane = PixelPlane(width: size.width, height: size.height, channels: 3, storage: storage)
        return DecodedImage(planes: [plane], model: .rgb, alpha: .none)
    }

    private func draw(
        _ line: Substring, _ row: TextParameters.Row, pixels: UnsafeMutablePointer<UInt8>
    ) -> ctext_status {
        var text = ""
        func append(_ part: Substring) {
            for character in part { text.unicodeScalars.append(contentsOf: character.drawableScalars) }
        }
        if line.count > 2 * Self.labelEnds {
            append(line.prefix(Self.labelEnds))
            append("…")
            append(line.suffix(Self.labelEnds))
        } else {
            append(line)
        }
        return text.withUTF8 { text in
            var label = ctext_label()
            label.text = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
            label.count = text.count
            (label.bold, label.font_size) = (row.isBold, row.fontSize)
            return withUnsafePointer(to: label) {
                ctext_draw_label($0, Int32(row.size.width), Int32(row.size.height), pixels)
            }
        }
    }
}
