#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineJXL
import CVitrineVips
import VitrineImaging

HelperVersion.printIfRequested(
    "vitrine-worker",
    [("libvips", String(cString: cvips_version())), ("libjxl", String(cString: cjxl_version()))]
        + LibraryVersion.codecs.compactMap { library in library.version.map { (library.name, $0) } })
let server = WorkerServer(
    decoders: DecoderRegistry.standard.decoders + [LibJXLDecoder(), VipsDecoder()], encoders: [LibJXLEncoder()],
    warmUp: WarmUp.run)
exit(server.run().rawValue)
