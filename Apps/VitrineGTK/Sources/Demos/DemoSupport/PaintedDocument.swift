import CGTK
import Foundation

/// A generated PDF document, for screenshots and checks.
package enum PaintedDocument {
    private static let width = 420.0, height = 595.0

    /// Writes a document.
    ///
    /// - Returns: false if the file cannot be written.
    package static func write(pages: Int, to path: String) -> Bool {
        let surface = cairo_pdf_surface_create(path, width, height)
        defer { cairo_surface_destroy(surface) }
        let context = cairo_create(surface)
        defer { cairo_destroy(context) }
        for page in 1...max(1, pages) {
            paint(page, on: context)
            cairo_show_page(context)
        }
        cairo_surface_finish(surface)
        return cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS
    }

    private static func paint(_ page: Int, on context: OpaquePointer?) {
        let hue = Double(page * 37 % 100) / 100
        cairo_set_source_rgb(context, 0.3 + 0.5 * hue, 0.45, 0.8 - 0.5 * hue)
        if page % 6 == 1 {
            cairo_rectangle(context, 0, 0, width, 230)
            cairo_fill(context)
            for ring in 0..<9 {
                cairo_set_source_rgba(context, 1, 1, 1, 0.12)
                cairo_arc(context, 90 + 260 * hue, 120, Double(12 * (ring + 1)), 0, 2 * .pi)
                cairo_fill(context)
            }
            text("Chapter \(page / 6 + 1)", at: 48, 300, size: 34, on: context)
            return lines(from: 340, on: context, seed: page)
        }
        cairo_rectangle(context, 48, 48, width - 96, 3)
        cairo_fill(context)
        text("On keeping and showing", at: 48, 42, size: 9, on: context)
        text("\(page)", at: width - 62, 42, size: 9, on: context)
        if page % 4 == 0 {
            for bar in 0..<9 {
                let tall = 30 + Double((page * 7 + bar * 29) % 90)
                cairo_set_source_rgb(context, 0.3 + 0.5 * hue, 0.45, 0.8 - 0.5 * hue)
                cairo_rectangle(context, 60 + Double(bar) * 34, 230 - tall, 24, tall)
                cairo_fill(context)
            }
            return lines(from: 270, on: context, seed: page)
        }
        lines(from: 84, on: context, seed: page)
    }

    private static func lines(from top: Double, on context: OpaquePointer?, seed: Int) {
        let words =
            "a thing is fetched once decoded at the size of its place kept as long as there is room shown at once"
            .split(separator: " ")
        var y = top, word = seed
        while y < height - 50 {
            var line = ""
            let isLast = (word / 7) % 6 == 0
            while line.count < (isLast ? 30 : 50) {
                line += words[word % words.count] + " "
                word = word &* 5 &+ seed &+ 3
                word = abs(word % 9973)
            }
            text(line, at: 48, y, size: 11, on: context)
            y += isLast ? 26 : 17
        }
    }

    private static func text(_ text: String, at x: Double, _ y: Double, size: Double, on context: OpaquePointer?) {
        cairo_set_source_rgb(context, 0.13, 0.13, 0.15)
        cairo_select_font_face(context, "serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL)
        cairo_set_font_size(context, size)
        cairo_move_to(context, x, y)
        cairo_show_text(context, text)
    }
}
