// Measures the thumbnail service on photos, which are given as files and made into as many as are needed by links.
//   ThumbnailsBenchmark caches COUNT PHOTO...    making, reading from disk and from memory, against vipsthumbnail
//   ThumbnailsBenchmark scroll CELLS PHOTO...    a fling over cells, against the cells it ends at alone
//   ThumbnailsBenchmark sizes COUNT PHOTO...     three sizes in one go, against the largest alone
//   ThumbnailsBenchmark formats PHOTO...         what it costs to read a thumbnail back
let arguments = Array(CommandLine.arguments.dropFirst())
let count = arguments.count > 1 ? Int(arguments[1]) : nil
switch (arguments.first, count) {
case ("caches", let count?): try await CachesBenchmark(Photos(count, of: arguments.dropFirst(2))).run()
case ("scroll", let count?): try await ScrollBenchmark(Photos(count, of: arguments.dropFirst(2))).run()
case ("sizes", let count?): try await SizesBenchmark(Photos(count, of: arguments.dropFirst(2))).run()
case ("formats", nil): try await FormatsBenchmark(photos: Array(arguments.dropFirst())).run()
default:
    print("usage: ThumbnailsBenchmark caches|scroll|sizes COUNT PHOTO... | formats PHOTO...")
}
