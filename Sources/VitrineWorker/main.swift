#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineJXL
import CVitrineRaw
import CVitrineVips
import VitrineImaging

HelperVersion.printIfRequested(
    "vitrine-worker",
    [("libvips", String(cString: cvips_version())), ("libjxl", String(cString: cjxl_version()))]
        + LibraryVersion.codecs.compactMap { library in library.version.map { (library.name, $0) } })
// The host runs a worker on each processor.
IdleCores.shared.limit(to: 1)
// Icons of Apple can hold JPEG 2000.
let icons = ICNSDecoder(pictures: [PNGDecoder(), VipsDecoder()])
let decoders: [any ImageDecoding] =
    [SecondOpinion(on: .avif)] + DecoderRegistry.standard.decoders + [LibJXLDecoder(), VipsDecoder(), icons]
let server =
    CommandLine.arguments.dropFirst().first == RawDevelopment.argument
    ? WorkerServer(documents: RawDeveloper(), warmUp: { _ = craw_load() })
    : WorkerServer(
        decoders: decoders, encoders: [LibJXLEncoder()], documents: ComicArchive(), warmUp: WarmUp.run,
        hasFailedCheck: cvips_has_failed_check)
exit(server.run().rawValue)
