#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif
import VitrineImaging

let server = WorkerServer(
    decoders: [SecondOpinion(on: .avif)] + DecoderRegistry.standard.decoders + [LibJXLDecoder(), VipsDecoder()],
    encoders: [LibJXLEncoder()],
    warmUp: WarmUp.run)
exit(server.run().rawValue)
