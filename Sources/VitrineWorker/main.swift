#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineJP2
import CVitrineJXL
import CVitrineRaw
import CVitrineTIFF
import CVitrineVips
import VitrineImaging
import VitrinePNG
import VitrineRaster

HelperVersion.printIfRequested(
    "vitrine-worker",
    [
        ("libvips", String(cString: cvips_version())), ("OpenJPEG", String(cString: cjp2_version())),
        ("libtiff", String(cString: ctiff_version())), ("libjxl", String(cString: cjxl_version())),
    ]
        + Codecs.standard.libraries.compactMap { library in library.version.map { (library.name, $0) } })
// The host runs a worker on each processor.
IdleCores.shared.limit(to: 1)
// Icons of Apple can hold JPEG 2000.
var jp2 = Codec.jp2
jp2.decoders = [JP2Decoder()]
let icons = ICNSDecoder(pictures: Codecs([.png, jp2]))
let decoders: [any ImageDecoding] =
    [SecondOpinion(on: .avif)] + DecoderRegistry.standard.decoders
    + [LibJXLDecoder(), JP2Decoder(), TIFFDecoder(), VipsDecoder(), icons]
let server =
    CommandLine.arguments.dropFirst().first == RawDevelopment.argument
    ? WorkerServer(documents: RawDeveloper(), warmUp: { _ = craw_load() })
    : WorkerServer(
        decoders: decoders, encoders: [LibJXLEncoder()], codecs: .pictures, documents: ComicArchive(),
        warmUp: WarmUp.run, hasFailedCheck: cvips_has_failed_check)
exit(server.run().rawValue)
