#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineFFmpeg
import VitrineImaging

HelperVersion.printIfRequested("vitrine-video", [("FFmpeg", String(cString: cffmpeg_version()))])
let server = WorkerServer(
    decoders: [HEVCTileDecoder()], documents: VideoRenderer(), warmUp: cffmpeg_start)
exit(server.run().rawValue)
