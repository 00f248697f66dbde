// swift-tools-version: 6.2
import PackageDescription

// Set by continuous integration: every warning in this package becomes an error.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

/// One of the four programs that show what the library does.
func demo(_ name: String, _ products: String...) -> Target {
    .executableTarget(
        name: name,
        dependencies: ["VitrineGTK", "DemoSupport"] + products.map { .product(name: $0, package: "Vitrine") },
        path: "Sources/Demos/\(name)", swiftSettings: swift)
}

let package = Package(
    name: "VitrineGTK",
    products: [
        .library(name: "VitrineGTK", targets: ["VitrineGTK"]),
        .executable(name: "vitrine-grid", targets: ["GridDemo"]),
        .executable(name: "vitrine-reader", targets: ["ReaderDemo"]),
        .executable(name: "vitrine-downloads", targets: ["DownloadsDemo"]),
        .executable(name: "vitrine-shelf", targets: ["ShelfDemo"]),
    ],
    dependencies: [.package(name: "Vitrine", path: "../..")],
    targets: [
        // GTK itself: nothing but a module map over the installed headers.
        .systemLibrary(
            name: "CGTK", pkgConfig: "gtk4", providers: [.apt(["libgtk-4-dev"]), .brew(["gtk4"])]),
        // What the importer cannot see of GTK and of libdispatch.
        .target(name: "CMainQueue"),
        .target(
            name: "VitrineGTK",
            dependencies: [
                "CGTK", "CMainQueue",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
                .product(name: "VitrineViews", package: "Vitrine"),
            ],
            swiftSettings: swift),
        .target(
            name: "DemoSupport",
            dependencies: [
                "VitrineGTK", "CGTK",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
            ],
            path: "Sources/Demos/DemoSupport", swiftSettings: swift),
        .executableTarget(
            name: "PaintSamples",
            dependencies: [
                "DemoSupport", .product(name: "VitrineCore", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
            ],
            path: "Sources/Demos/PaintSamples", swiftSettings: swift),
        demo("GridDemo", "VitrineCore", "VitrineImaging", "VitrineCache", "VitrineViews", "vitrine-worker", "VitrineNetwork", "VitrinePipeline"),
        demo("ReaderDemo", "VitrineCore", "VitrineImaging", "VitrineViews", "VitrinePipeline", "vitrine-pdf"),
        demo("DownloadsDemo", "VitrineCore", "VitrineImaging", "VitrineViews", "VitrinePipeline", "VitrineDownloads", "VitrineNetwork"),
        demo("ShelfDemo", "VitrineCore", "VitrineImaging", "VitrineViews", "VitrineStores", "VitrinePipeline"),
        .testTarget(
            name: "VitrineGTKTests",
            dependencies: [
                "VitrineGTK", "DemoSupport", "GridDemo", "ReaderDemo", "DownloadsDemo", "ShelfDemo",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
            ],
            swiftSettings: swift),
    ],
    swiftLanguageModes: [.v6]
)
