#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineImaging

// Apple's icons can hold JPEG 2000.
let icons = ICNSDecoder(pictures: [PNGDecoder(), VipsDecoder()])
let server = WorkerServer(
    decoders: DecoderRegistry.standard.decoders + [LibJXLDecoder(), VipsDecoder(), icons], encoders: [LibJXLEncoder()],
    warmUp: WarmUp.run)
exit(server.run().rawValue)
