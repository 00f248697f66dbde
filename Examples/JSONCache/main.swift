// JSON by its URL: loaded once, however often it is asked for, and there when the server has gone.
import ExampleServer
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-json-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }

// Any server: this one is for the sake of the example.
let server = try ExampleServer { request in
    guard request.path == "/users/haneke" else { return .status(404) }
    let text = #"{"name": "Haneke", "films": [{"title": "Caché", "year": 2005}, {"title": "Amour", "year": 2012}]}"#
    return .body(Array(text.utf8), type: "application/json")
}
let url = server.url("/users/haneke")

let cache = Cache<JSON>(name: "users", configuration: CacheConfiguration(root: directory))
let user = try await cache.value(from: url)
print("loaded:", user["name"]?.string ?? "no name")
for film in user["films"]?.array ?? [] { print("-", film["title"]?.string ?? "", film["year"]?.int ?? 0) }

// The same with callbacks. What is in memory is there at once.
cache.fetch(from: url).onSuccess { json in print("in memory:", json["films"]?.array?.count ?? 0, "films") }

// A value that is no JSON, or is not there, is an error that says so.
do {
    _ = try await cache.value(from: server.url("/users/nobody"))
} catch {
    if case .source(_, NetworkError.status(_, let head)) = error { print("nobody: status", head.status) }
}

// Another run of the program, without a network.
try await cache.flush()
let requests = server.requests.count
server.stop()
let later = Cache<JSON>(name: "users", configuration: CacheConfiguration(root: directory))
struct User: Decodable { var name: String }
print("from disk:", try await later.value(from: url).decoded(as: User.self).name)
print("requests:", requests)
// What is still to be written is, before the directory goes.
try await later.flush()
