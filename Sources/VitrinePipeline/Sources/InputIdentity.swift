import VitrineCore
import VitrineImaging

/// The identity of a file or of bytes, for sources that read either.
struct InputIdentity: Sendable {
    private let input: ImageInput
    private let digest: ContentDigest?

    init(_ input: ImageInput) {
        self.input = input
        if case .bytes(let bytes, _) = input { digest = ContentDigest(bytes) } else { digest = nil }
    }

    /// - Throws: As ``FileIdentity/key(of:)``.
    func key() throws(ImagePipelineError) -> CacheKey {
        switch input {
        case .file(let path): try FileIdentity.key(of: path)
        case .bytes(let bytes, _): (digest ?? ContentDigest(bytes)).key
        }
    }
}
