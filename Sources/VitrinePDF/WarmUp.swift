import CVitrinePoppler

/// Loads the files that drawing needs, before the sandbox closes the file system.
enum WarmUp {
    /// Opens a document, draws it, and leaves it open.
    ///
    /// Poppler lists its tables of encodings (poppler-data) with the first open document and drops them with the last.
    /// The sandbox allows no listing of folders later. The document does not embed its fonts, one of them Japanese, so
    /// that fontconfig reads the installed ones.
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
        /E<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light/Encoding/90ms-RKSJ-H/DescendantFonts[
        <</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light/CIDSystemInfo
        <</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/FontDescriptor 5 0 R>>]>> >> >> >> endobj
        4 0 obj <</Length 118>> stream
        BT /A 20 Tf 10 160 Td (Ab) Tj /B 20 Tf (Ab) Tj /C 20 Tf (Ab) Tj /D 20 Tf (ab) Tj /E 20 Tf <82A082A2> Tj ET
        endstream endobj
        5 0 obj <</Type/FontDescriptor/FontName/Ryumin-Light/Flags 6/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 800
        /Descent -200/CapHeight 700/StemV 80>> endobj
        trailer <</Root 1 0 R/Size 6>>
        %%EOF

        """
}
