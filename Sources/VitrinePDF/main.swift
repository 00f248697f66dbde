#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineImaging

let server = WorkerServer(documents: PDFRenderer(), warmUp: WarmUp.run)
exit(server.run().rawValue)
