import VitrineImaging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

// A program that is its own worker, as VitrineWorkerMain describes it. What is asked of it comes after this line:
//   WorkerTestHost decode FILE   decodes a file in a worker that is this program, and says what came of it
//   WorkerTestHost locate        says what a pool that finds no vitrine-worker would start
//   WorkerTestHost               is a worker with the decoders of TestDecoders.swift
VitrineWorkerMain.runIfRequested()

switch CommandLine.arguments.dropFirst().first {
case "decode":
    let source = try ByteSource(.file(CommandLine.arguments[2]))
    let info = try ImageInfo(reading: source, limits: .standard)
    let pool = WorkerPool(location: .hostProgram, maximumWorkers: 1)
    let plane = try pool.decode(source, DecodeRequest(info: info, target: nil)).planes[0]
    let digest = plane.storage.withUnsafeBytes { bytes in bytes.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) } }
    let isOtherProcess = pool.idleIdentifiers.count == 1 && pool.idleIdentifiers[0] != getpid()
    print("\(plane.width) \(plane.height) \(digest) \(isOtherProcess)")
case "locate":
    print(WorkerLocation.automatic.resolve(program: "vitrine-absent")?.arguments.joined(separator: " ") ?? "nothing")
default:
    let server = WorkerServer(
        decoders: [LeakingDecoder(), FinalDecoder()],
        patience: { FinalDecoder.hasDecoded ? 0 : WorkerServer.idleTimeout * 1_000 })
    exit(server.run().rawValue)
}
