// swift-tools-version: 6.2
import PackageDescription

// A client of the package that uses every product, with warnings as errors, and the snippets of the documentation.
// `check` extracts the snippets, builds everything and runs the program; `compare-debug` measures debug builds.
let products = [
    "Vitrine", "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineNetwork", "VitrineDownloads",
    "VitrinePipeline", "VitrineStores", "VitrineModels", "VitrineModelsEncryption", "VitrineViews",
    "VitrineWebPages", "VitrineCompatibility",
]
let helpers = ["vitrine", "vitrine-agent", "vitrine-worker", "vitrine-pdf", "vitrine-video", "vitrine-text"]

let package = Package(
    name: "Client",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Vitrine", path: "../..")],
    targets: [
        .executableTarget(
            name: "Client", dependencies: (products + helpers).map { .product(name: $0, package: "Vitrine") },
            swiftSettings: [.treatAllWarnings(as: .error)]),
        .executableTarget(
            name: "Both", dependencies: ["OtherTypes", .product(name: "Vitrine", package: "Vitrine")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
        .target(name: "OtherTypes"),
        .executableTarget(
            name: "Timings", dependencies: [.product(name: "VitrineImaging", package: "Vitrine")],
            swiftSettings: [.treatAllWarnings(as: .error)]),
        .executableTarget(name: "Extract", swiftSettings: [.treatAllWarnings(as: .error)]),
        // Snippets declare values that they do not use, so their warnings are meaningless.
        .target(
            name: "Snippets",
            dependencies: ["Vitrine", "VitrineWebPages", "VitrineCompatibility"].map {
                .product(name: $0, package: "Vitrine")
            },
            swiftSettings: [.unsafeFlags(["-suppress-warnings"])]),
    ],
    swiftLanguageModes: [.v6]
)
