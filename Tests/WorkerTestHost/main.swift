import Dispatch
import Foundation
import VitrineImaging

// A program that is its own worker, as VitrineWorkerMain describes it. What is asked of it comes after this line:
//   WorkerTestHost decode FILE   decodes a file in a worker that is this program, and says what came of it
//   WorkerTestHost locate        says whether it is its own worker
//   WorkerTestHost exit          decodes and exits while one worker is idle, and another one works
//   WorkerTestHost wait          the same, but says "ready" and waits for a signal
//   WorkerTestHost isolated FILE decodes a file by a decoder that is told nothing of isolation, which is always wanted
//   WorkerTestHost init COUNT SIGNAL PROGRAM…   is process 1; see InitProcess
//   WorkerTestHost               is a worker with the decoders of TestDecoders.swift
VitrineWorkerMain.runIfRequested()
if CommandLine.arguments[0].hasSuffix("liar") { Liar.run() }

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
    print(WorkerPool.own?.isAvailable == true ? "own" : "none")
    print(WorkerLocation.automatic.resolve(program: "vitrine-absent")?.path ?? "nothing")
case "exit", "wait":
    let pool = WorkerPool(
        program: "WorkerTestHost", location: .executable(CommandLine.arguments[0]), maximumWorkers: 2)
    let isSignalled = CommandLine.arguments[1] == "wait"
    if isSignalled { WorkerPool.endHelpersOnSignals() }
    let source = ByteSource(bytes: [1], name: "any")
    let request = DecodeRequest(info: ImageInfo(format: .png, storedSize: PixelSize(1)), target: nil)
    Thread.detachNewThread { _ = try? pool.decode(source, request, decoder: "EndlessDecoder") }
    while pool.busyCount == 0 { usleep(1_000) }
    _ = try pool.decode(source, request, decoder: "LeakingDecoder")
    if isSignalled {
        try FileHandle.standardOutput.write(contentsOf: Data("ready".utf8))
        while true { pause() }
    }
    exit(0)
case "isolated":
    Isolation.standard = .always
    do {
        print(try ImageDecoder().decode(.file(CommandLine.arguments[2])).size)
    } catch {
        print(error)
    }
case "init":
    let arguments = Array(CommandLine.arguments.dropFirst(2))
    try InitProcess.run(count: Int(arguments[0]) ?? 1, signal: Int32(arguments[1]) ?? 0, Array(arguments[2...]))
default:
    guard var codec = Codecs.standard[.png] else { exit(1) }
    codec.decoders = [
        LeakingDecoder(), FinalDecoder(), EndlessDecoder(), HungryDecoder(), RaisingDecoder(), HoleyDecoder(),
        DamagingDecoder(), CrashingDecoder(), InconsistentDecoder(), RefusingDecoder(), WaitingDecoder(),
        BusyDecoder(), EchoingDecoder(),
    ]
    let server = WorkerServer(
        codecs: Codecs([codec]), patience: { FinalDecoder.hasDecoded ? 0 : WorkerServer.idleTimeout * 1_000 })
    exit(server.run().rawValue)
}
