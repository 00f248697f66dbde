#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrineText
import VitrineImaging

HelperVersion.printIfRequested("vitrine-text", [("pango", String(cString: ctext_version()))])
let server = WorkerServer(documents: TextRenderer(), warmUp: { ctext_start() })
exit(server.run().rawValue)
