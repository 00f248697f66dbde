// swift-tools-version: 6.2
import PackageDescription

// The examples are a client of the package. `check` runs them.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

func example(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .executableTarget(
        name: name, dependencies: [.product(name: "Vitrine", package: "Vitrine")] + dependencies, path: name,
        exclude: ["output.txt"], swiftSettings: swift)
}

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Vitrine", path: "..")],
    targets: [
        example("AuditPolicies", .product(name: "VitrineCompatibility", package: "Vitrine")),
        // The helpers that read most formats are beside the program.
        example(
            "Batch", .product(name: "vitrine-worker", package: "Vitrine"),
            .product(name: "vitrine-pdf", package: "Vitrine"), .product(name: "vitrine-video", package: "Vitrine")),
        example("CustomDecoder"),
        example("CustomFetcher"),
        example("CustomFormat"),
        example("CustomType"),
        example("Placeholders"),
        // The helper that draws pages is beside the program.
        example("PrecachedPages", .product(name: "vitrine-pdf", package: "Vitrine")),
        example("SetAndFetch"),
        example("SmallThenBig"),
    ],
    swiftLanguageModes: [.v6]
)

// The server of these examples runs on Linux.
#if os(Linux)
package.targets += [
    example("Downloads", "ExampleServer"),
    example("ImageGrid", "ExampleServer"),
    example("JSONCache", "ExampleServer"),
    example("ProgressiveImages", "ExampleServer"),
    .target(name: "ExampleServer", path: "ExampleServer", swiftSettings: swift),
]
#endif
