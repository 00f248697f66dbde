// A node of a fleet for tests: looks a key up, says what it got, and stores a value when a line comes in.
//
//   fleet-node URL NAMESPACE KEY
import Foundation
import NIOCore
import VitrineFleet

let arguments = CommandLine.arguments
var configuration = RemoteTier.Configuration(redis: try RedisConfiguration(url: arguments[1]), namespace: arguments[2])
configuration.leaseTime = .seconds(3)
let tier = try RemoteTier(configuration)
try await tier.connect()
switch await tier.lookup(RemoteKey(arguments[3])) {
case .value: print("value")
case .bypass: print("bypass")
case .lease(let lease):
    // Standard output is a pipe: each line is written as it is.
    FileOutput.write("lease\n")
    _ = readLine()
    lease.store(ByteBuffer(string: "late"), freshFor: .seconds(60))
    await tier.flush()
    FileOutput.write("\(tier.statistics.stores) \(tier.statistics.fencedStores)\n")
}
await tier.shutDown()

enum FileOutput {
    static func write(_ text: String) {
        print(text, terminator: "")
        _ = flush()
    }

    private static func flush() -> Int32 { fflush(nil) }
}
