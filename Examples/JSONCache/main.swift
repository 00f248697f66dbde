// JSON by URL: loaded once for all requests, and available after the server has stopped.
import ExampleServer
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-json-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

// A local server for the example.
let server = try ExampleServer { request in
    guard request.path == "/users/haneke" else { return .status(404) }
    let text = #"{"name": "Haneke", "films": [{"title": "Caché", "year": 2005}, {"title": "Amour", "year": 2012}]}"#
    return .body(Array(text.utf8), type: "application/json")
}
let url = server.url("/users/haneke")

let cache = ValueCache<JSONValue>(name: "users", configuration: CacheConfiguration(root: directory))
let user = try await cache.value(from: url)
print("loaded:", user["name"]?.string ?? "no name")
for film in user["films"]?.array ?? [] { print("-", film["title"]?.string ?? "", film["year"]?.int ?? 0) }

// The next call finds the value in memory.
let again = try await cache.value(from: url)
print("in memory:", again["films"]?.array?.count ?? 0, "films")

// Invalid JSON and missing values throw errors.
do {
    _ = try await cache.value(from: server.url("/users/nobody"))
} catch {
    if case .source(_, NetworkError.status(_, let head)) = error { print("nobody: status", head.status) }
}

// Another run of the program, without a network.
try await cache.flush()
let requests = server.requests.count
server.stop()
let later = ValueCache<JSONValue>(name: "users", configuration: CacheConfiguration(root: directory))
struct User: Decodable { var name: String }
print("from disk:", try await later.value(from: url).decoded(as: User.self).name)
print("requests:", requests)
// Finish pending writes before the directory is removed.
try await later.flush()
