// A reader's pages, drawn before anybody turns to them: all at the lowest priority, and one that is wanted now at once.
import Foundation
import Vitrine

let directory = FileManager.default.temporaryDirectory.appending(path: "vitrine-pages-\(UUID().uuidString)").path
defer { try? FileManager.default.removeItem(atPath: directory) }
let samples = CommandLine.arguments.dropFirst().first ?? "Samples"

let document = PDFDocument(path: samples + "/lake.pdf")
let info = try document.info()
let pages = (1...info.pageCount).map { document.page($0) }
print("pages:", pages.count)

let service = ImagePipeline(.init(root: directory))
let prefetch = service.prefetch(pages.map { ImageRequest($0, size: .fit(120)) })
// Joins the work if it has begun, and makes it urgent.
let first = try await service.image(for: ImageRequest(pages[0], size: .fit(120), priority: .veryHigh))
print("page 1 is there:", max(first.width, first.height) == 120)
let done = await prefetch.finished
print("on disk:", done.made + done.skipped, "- failed:", done.failed)
try await service.cache.flush()

// The reader is opened again: nothing has to be drawn.
let again = ImagePipeline(.init(root: directory))
for page in pages { _ = try await again.image(for: ImageRequest(page, size: .fit(120))) }
print("drawn:", again.statistics.made, "- from disk:", again.statistics.fromDisk)
// What is still to be written is, before the directory goes.
try await again.cache.flush()
