#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import CVitrinePoppler
import VitrineImaging

HelperVersion.printIfRequested("vitrine-pdf", [("poppler", String(cString: cpoppler_version()))])
let server = WorkerServer(documents: PDFRenderer(), warmUp: WarmUp.run)
exit(server.run().rawValue)
