import VitrineImageCore

extension Codecs {
    /// Files that are shown by an image inside them, and recordings and videos.
    package static let containers = Codecs(
        ([
            TIFFRawLocator.self, CanonRaw3Locator.self, CanonHeapLocator.self, FujifilmRawLocator.self,
            SigmaRawLocator.self, MinoltaRawLocator.self,
            ZipPictures.self, MobiPictures.self, FictionBookPictures.self, ComicTarPictures.self,
            ComicArchivePictures.self, GCodePictures.self,
        ] as [any PictureLocating.Type]).map { Codec($0) } + [Codec(media: MediaContainers.self)])
}
