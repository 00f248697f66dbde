#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineFFmpeg
import VitrineImaging

if let missing = cffmpeg_start() {
    let message = Array("vitrine-video: \(String(cString: missing))\n".utf8)
    _ = message.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    // That of a program whose libraries the dynamic linker does not find.
    exit(127)
}
HelperVersion.printIfRequested("vitrine-video", [("FFmpeg", String(cString: cffmpeg_version()))])
let server = WorkerServer(decoders: [], documents: VideoRenderer())
exit(server.run().rawValue)
