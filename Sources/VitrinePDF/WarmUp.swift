import CVitrinePoppler

/// Loads the files that drawing needs, before the sandbox closes the file system.
enum WarmUp {
    /// Opens a document, draws it, and leaves it open.
    ///
    /// Poppler lists its tables of encodings (poppler-data) with the first open document and drops them with the last.
    /// The sandbox allows no listing of folders later. The document does not embed its fonts, so that fontconfig lists
    /// the installed ones. The files of fonts and encodings can be opened later: those of a Japanese font take 20 ms.
    static func run() {
        cpoppler_start()
        let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: document.utf8.count)
        _ = bytes.initialize(fromContentsOf: document.utf8)
        var opened: OpaquePointer?
        guard cpoppler_open(bytes.baseAddress, bytes.count, nil, &opened) == CPOPPLER_OK, let opened else { return }
        var pixels = [UInt8](repeating: 0, count: side * side * 3)
        let drawing = cpoppler_drawing(
            page: 0, width: Int32(side), height: Int32(side), red: 255, green: 255, blue: 255, alpha: 255)
        // Errors do not matter: without fonts the helper still draws everything else.
        _ = withUnsafePointer(to: drawing) { cpoppler_draw(opened, $0, &pixels) }
    }

    private static let side = 32

    /// A document without a table of objects, which poppler then reconstructs.
    private static let document = """
        %PDF-1.4
        1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
        2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
        3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<<
        /A<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>/B<</Type/Font/Subtype/Type1/BaseFont/Times-Bold>>
        /C<</Type/Font/Subtype/Type1/BaseFont/Courier-Oblique>>/D<</Type/Font/Subtype/Type1/BaseFont/Symbol>>
        >> >> >> endobj
        4 0 obj <</Length 83>> stream
        BT /A 20 Tf 10 160 Td (Ab) Tj /B 20 Tf (Ab) Tj /C 20 Tf (Ab) Tj /D 20 Tf (ab) Tj ET
        endstream endobj
        trailer <</Root 1 0 R/Size 5>>
        %%EOF

        """
}
