public import VitrineCore

extension FormatName {
    /// The name of the format for a target of this size (R35): `auto-40x30-aspectfit`, with `-noupscaling` at the end
    /// where smaller originals stay as they are.
    ///
    /// - Parameters:
    ///   - width: In pixels, scale included.
    ///   - height: In pixels, scale included.
    ///   - mode: How the value fills the target, for example `fill`, `aspectfit` or `aspectfill`.
    ///   - upscaling: Whether smaller originals are enlarged.
    public static func automatic(width: Int, height: Int, mode: String, upscaling: Bool = true) -> FormatName {
        FormatName("auto-\(width)x\(height)-\(mode)\(upscaling ? "" : "-noupscaling")")
    }

    /// What an automatic format may keep on disk: 50 MiB (R35).
    public static let automaticDiskCapacity: ByteCount = .mebibytes(50)
    /// The quality automatic formats encode JPEG at, 0 to 1 (R35).
    public static let automaticQuality = 0.75
}
