// The pages of a reader, drawn in advance at the lowest priority, and one page that is needed immediately.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-pages-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let document = PDFDocument(.file(samples + "/lake.pdf"))
let info = try document.info()
let pages = (1...info.pageCount).map { document.page($0) }
print("pages:", pages.count)

let service = ImagePipeline(.init(root: directory))
let prefetch = service.prefetch(pages.map { ImageRequest($0, resizing: .fit(120)) })
// Joins a running request and raises its priority.
let first = try await service.image(for: ImageRequest(pages[0], resizing: .fit(120), priority: .veryHigh))
print("page 1 is there:", max(first.width, first.height) == 120)
let done = await prefetch.finished
print("on disk:", done.made + done.skipped, "- failed:", done.failed)
try await service.cache.flush()

// The reader is opened again. All pages come from the cache.
let again = ImagePipeline(.init(root: directory))
for page in pages { _ = try await again.image(for: ImageRequest(page, resizing: .fit(120))) }
print("drawn:", again.statistics.made, "- from disk:", again.statistics.fromDisk)
// Finish pending writes before the directory is removed.
try await again.cache.flush()
