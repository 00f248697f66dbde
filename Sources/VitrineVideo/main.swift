#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineFFmpeg
import VitrineImaging

cffmpeg_start()
HelperVersion.printIfRequested("vitrine-video", [("FFmpeg", String(cString: cffmpeg_version()))])
let server = WorkerServer(documents: VideoRenderer())
exit(server.run().rawValue)
