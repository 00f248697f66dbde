// A custom fetcher: it produces missing values, with a time to live and a custom error.
import Foundation
import Synchronization
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-fetcher-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

/// The error for an unknown city.
struct UnknownCity: Error { let name: String }

/// Fetches the weather of a city, which is valid for ten minutes. Counts its calls.
struct WeatherFetcher: Fetcher {
    static let asked = Mutex<[String: Int]>([:])
    let city: String
    var key: CacheKey { CacheKey("weather", city) }

    func fetch(_ context: FetchContext) async throws -> FetchResult<String> {
        Self.asked.withLock { $0[city, default: 0] += 1 }
        guard let report = ["Bremen": "rain", "Basel": "sun"][city] else { throw UnknownCity(name: city) }
        return FetchResult(value: report, timeToLive: .seconds(600))
    }
}

/// The time of the example, which moves only by assignment.
enum ExampleTime { static let now = Mutex(Duration.seconds(0)) }

var configuration = CacheConfiguration(root: directory)
configuration.clock = WallClock { ExampleTime.now.withLock { $0 } }
let cache = ValueCache<String>(name: "weather", configuration: configuration)

for city in ["Bremen", "Basel", "Bremen"] { print(city, try await cache.value(from: WeatherFetcher(city: city))) }
print("asked for Bremen:", WeatherFetcher.asked.withLock { $0["Bremen"] ?? 0 })

ExampleTime.now.withLock { $0 += .seconds(601) }
_ = try await cache.value(from: WeatherFetcher(city: "Bremen"))
print("asked for Bremen after ten minutes:", WeatherFetcher.asked.withLock { $0["Bremen"] ?? 0 })

do {
    _ = try await cache.value(from: WeatherFetcher(city: "Atlantis"))
} catch {
    if case .source(_, let cause as UnknownCity) = error { print("unknown:", cause.name) }
}
// Finish pending writes before the directory is removed.
try await cache.flush()
