// The snippets of Documentation/S3.md, which Scripts/check-snippets compares. They are compiled and not run.
import VitrineCore
import VitrineS3

private func use(_ bytes: [UInt8]) async throws {
    var configuration = S3Client.Configuration.fromEnvironment()
    configuration.endpoint = "https://objects.example.org"
    let client = try S3Client(configuration)
    let pictures = client.bucket("pictures")

    try await pictures.put(bytes, as: "cats/1.jpeg", type: "image/jpeg")
    let cat = try await pictures.get("cats/1.jpeg")
    for try await object in pictures.list(prefix: "cats/") { print(object.key, object.size ?? 0) }
    _ = cat
}

func keep(_ letter: [UInt8], in letters: some FileStoring) async throws {
    try await letters.save(letter, as: "Änderung.txt", replacing: false)
}
