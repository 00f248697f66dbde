/// Where one frame of a GIF stands and how it is to be shown.
///
/// Source: GIF89a specification (CompuServe, 1990) §20 (image descriptor), §23 (graphic control extension).
package struct GIFFrame {
    /// What happens to the canvas before the next frame.
    package enum Disposal {
        case keep, clear, restore
    }

    package var x = 0
    package var y = 0
    package var width = 0
    package var height = 0
    package var isInterlaced = false
    package var disposal = Disposal.keep
    package var transparentIndex: Int?
    /// Hundredths of a second, as the file says.
    package var delay = 0
    /// The colour table that counts, local or global: its place in the input; empty if there is none.
    package var palette: Range<Int> = 0..<0
    /// Where the minimum code size stands; sub-blocks follow.
    package var data = 0
}
