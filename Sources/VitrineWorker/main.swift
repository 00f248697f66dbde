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
#if canImport(VitrineRaster)
import VitrineRaster
#endif
#if canImport(VitrineSVG)
import VitrineSVG
#endif

HelperVersion.printIfRequested(
    "vitrine-worker",
    [
        ("libvips", String(cString: cvips_version())), ("OpenJPEG", String(cString: cjp2_version())),
        ("libtiff", String(cString: ctiff_version())), ("libjxl", String(cString: cjxl_version())),
    ]
        + Codecs.standard.libraries.compactMap { library in library.version.map { (library.name, $0) } })
// The host runs a worker on each processor.
IdleCores.shared.limit(to: 1)
var decoders: [any ImageDecoding] = [JP2Decoder(), TIFFDecoder(), VipsDecoder()]
var encoders: [any ImageEncoding] = []
var archive: ArchivedPage?
#if canImport(VitrineJXL)
decoders.append(LibJXLDecoder())
encoders.append(LibJXLEncoder())
#endif
#if canImport(VitrineRaster)
// Icons of Apple can hold JPEG 2000.
var jp2 = Codec.jp2
jp2.decoders = [JP2Decoder()]
decoders.append(ICNSDecoder(pictures: Codecs([Codecs.standard[.png], jp2].compactMap(\.self))))
#endif
#if canImport(VitrineSVG)
decoders.append(SVGDecoder(renderer: VipsDecoder()))
#endif
#if canImport(VitrineContainers)
archive = ComicArchive.page(of:number:limits:)
#endif
let codecs = Codecs.standard.adding(decoders, first: [SecondOpinion(on: .avif)]).showingHeldPictures(archive: archive)
let server =
    CommandLine.arguments.dropFirst().first == RawDevelopment.argument
    ? WorkerServer(documents: RawDeveloper(), warmUp: { _ = craw_load() })
    : WorkerServer(
        codecs: codecs, encoders: encoders, files: InputReader(archive: archive),
        warmUp: WarmUp.run, hasFailedCheck: cvips_has_failed_check)
exit(server.run().rawValue)
