// A thumbnail of each file in a directory. The pipeline decodes as many at once as there are processors.
import Foundation
import Vitrine

let arguments = CommandLine.arguments
guard arguments.count > 1 else {
    print("usage: Batch DIRECTORY [OUTPUT]")
    exit(2)
}
let directory = arguments[1], output = arguments.count > 2 ? arguments[2] : NSTemporaryDirectory() + "/thumbnails"
try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
let names = try FileManager.default.contentsOfDirectory(atPath: directory)

let failures = await withTaskGroup { group in
    for name in names {
        group.addTask { () -> String? in
            var request = ImageRequest(.file("\(directory)/\(name)"), resizing: .fit(320))
            request.cacheLevels = []                    // each file is read once
            do {
                let image = try await ImagePipeline.shared.image(for: request)
                try AtomicFile.write(image.encoded(as: .webp(quality: 0.8)), to: "\(output)/\(name).webp")
                return nil
            } catch {
                return "\(error)"
            }
        }
    }
    var failures: [String] = []
    for await case let failure? in group { failures.append(failure) }
    return failures
}
for failure in failures.sorted() { print(failure) }
print("\(names.count - failures.count) thumbnails, \(failures.count) failures")
