// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

// Set by continuous integration: every warning in this package becomes an error.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []
let c: [CSetting] = [.define("_GNU_SOURCE", .when(platforms: [.linux]))]

let package = Package(
    name: "Vitrine",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2), .watchOS(.v11)],
    products: [
        .library(name: "Vitrine", targets: ["Vitrine"]),
        .library(name: "VitrineCore", targets: ["VitrineCore"]),
        .library(name: "VitrineDatabase", targets: ["VitrineDatabase"]),
        .library(name: "VitrineCache", targets: ["VitrineCache"]),
        .library(name: "VitrineImaging", targets: ["VitrineImaging"]),
        .library(name: "VitrineNetwork", targets: ["VitrineNetwork"]),
        .library(name: "VitrineDownloads", targets: ["VitrineDownloads"]),
        .library(name: "VitrineThumbnails", targets: ["VitrineThumbnails"]),
        .library(name: "VitrineStores", targets: ["VitrineStores"]),
        .library(name: "VitrineModels", targets: ["VitrineModels"]),
        .library(name: "VitrineViews", targets: ["VitrineViews"]),
        .library(name: "VitrineModelsEncryption", targets: ["VitrineModelsEncryption"]),
        .executable(name: "vitrine", targets: ["VitrineCommand"]),
        .executable(name: "vitrine-agent", targets: ["VitrineAgent"]),
        .executable(name: "vitrine-worker", targets: ["VitrineWorker"]),
        .executable(name: "vitrine-pdf", targets: ["VitrinePDF"]),
        .executable(name: "vitrine-video", targets: ["VitrineVideo"]),
    ],
    // Each of the traits named after one links a codec library into VitrineImaging. Without any of them the module is
    // pure Swift. `Macros` and `Encryption` are not enabled by default, as they build swift-syntax and swift-crypto.
    traits: [
        .trait(name: "LibJPEG", description: "Full-size and scaled JPEG decoding and JPEG encoding by libjpeg-turbo."),
        .trait(name: "LibPNG", description: "PNG encoding by libpng."),
        .trait(name: "LibWebP", description: "WebP decoding and encoding by libwebp."),
        .trait(name: "LibAVIF", description: "AVIF decoding and encoding by libavif."),
        .trait(name: "Macros", description: "@Persistable and its companions in VitrineModels; builds swift-syntax."),
        .trait(name: "Encryption", description: "Ciphers for the values of VitrineModels; builds swift-crypto."),
        .default(enabledTraits: ["LibJPEG", "LibPNG", "LibWebP", "LibAVIF"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        // Fetched and built with the trait `Macros` only.
        .package(url: "https://github.com/swiftlang/swift-syntax", "602.0.0"..<"604.0.0"),
        // Fetched and built with the trait `Encryption` only.
        .package(url: "https://github.com/apple/swift-crypto", "3.0.0"..<"5.0.0"),
    ],
    targets: [
        .target(
            name: "Vitrine",
            dependencies: [
                "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineModels", "VitrineNetwork", "VitrineDownloads",
                "VitrineThumbnails", "VitrineStores", "VitrineViews",
            ],
            swiftSettings: swift),
        .target(
            name: "VitrineCore",
            dependencies: [
                .product(name: "Logging", package: "swift-log"),
                .product(name: "DequeModule", package: "swift-collections"),
                "CFileSystem",
            ],
            swiftSettings: swift
        ),
        .target(name: "VitrineDatabase", dependencies: ["VitrineCore", "CSQLite"], swiftSettings: swift),
        .target(
            name: "VitrineCache",
            dependencies: ["VitrineCore", "VitrineDatabase", .product(name: "Metrics", package: "swift-metrics")],
            swiftSettings: swift
        ),
        .target(
            name: "VitrineImaging",
            dependencies: [
                "VitrineCore",
                "CSandbox",
                .target(name: "CJPEG", condition: .when(traits: ["LibJPEG"])),
                .target(name: "CPNG", condition: .when(traits: ["LibPNG"])),
                .target(name: "CWebP", condition: .when(traits: ["LibWebP"])),
                .target(name: "CAVIF", condition: .when(traits: ["LibAVIF"])),
            ],
            swiftSettings: swift
        ),
        .target(
            name: "VitrineNetwork",
            dependencies: [
                "VitrineCore", "VitrineCache", .target(name: "CCurl", condition: .when(platforms: [.linux])),
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: swift
        ),
        .target(
            name: "VitrineDownloads", dependencies: ["VitrineCore", "VitrineDatabase", "VitrineNetwork", "CDownloads"],
            swiftSettings: swift),
        .target(
            name: "VitrineThumbnails",
            dependencies: ["VitrineCore", "VitrineCache", "VitrineImaging", "DocumentWire"], swiftSettings: swift),
        .target(
            name: "VitrineStores", dependencies: ["VitrineCore", "VitrineImaging", "VitrineThumbnails", "CFileSystem"],
            swiftSettings: swift),
        // What the clients in VitrineThumbnails and the helpers for documents say to each other.
        .target(name: "DocumentWire", dependencies: ["VitrineImaging"], swiftSettings: swift),
        .target(
            name: "VitrineModels",
            dependencies: [
                "VitrineCore", "VitrineDatabase", "VitrineCache",
                .target(name: "VitrineModelsMacros", condition: .when(traits: ["Macros"])),
            ],
            swiftSettings: swift),
        .target(
            name: "VitrineViews",
            dependencies: ["VitrineCore", "VitrineCache", "VitrineImaging", "VitrineNetwork", "VitrineThumbnails"],
            swiftSettings: swift),
        // A module of its own, and empty without the trait, so that no other client builds swift-crypto.
        .target(
            name: "VitrineModelsEncryption",
            dependencies: [
                "VitrineModels",
                .product(
                    name: "Crypto", package: "swift-crypto",
                    condition: .when(platforms: [.linux], traits: ["Encryption"])),
            ],
            swiftSettings: swift),
        .macro(
            name: "VitrineModelsMacros",
            dependencies: [
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax", condition: .when(traits: ["Macros"])),
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax", condition: .when(traits: ["Macros"])),
            ],
            swiftSettings: swift),
        .executableTarget(
            name: "VitrineCommand",
            dependencies: [
                "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineModels", "VitrineNetwork", "VitrineDownloads",
                "VitrineThumbnails", "VitrineStores",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: swift
        ),
        .executableTarget(name: "VitrineAgent", dependencies: ["VitrineDownloads"], swiftSettings: swift),
        .executableTarget(
            name: "VitrineWorker", dependencies: ["VitrineImaging", "CVips", "CJXL", "CSandbox"], swiftSettings: swift),
        // A program of its own, as poppler is under the GPL: nothing else may depend on CPoppler.
        .executableTarget(
            name: "VitrinePDF", dependencies: ["VitrineImaging", "DocumentWire", "CPoppler", "CSandbox"],
            swiftSettings: swift),
        // A program of its own, as builds of FFmpeg may be under the GPL: nothing else may depend on CFFmpeg.
        .executableTarget(
            name: "VitrineVideo", dependencies: ["VitrineImaging", "DocumentWire", "CFFmpeg"], swiftSettings: swift),

        // Thin C shims: plain types in their headers, all varargs and longjmp inside.
        .target(name: "CJPEG", dependencies: ["SystemJPEG"], cSettings: c),
        .target(name: "CPNG", dependencies: ["SystemPNG"], cSettings: c),
        .target(
            name: "CWebP", dependencies: ["SystemWebP"], cSettings: c,
            linkerSettings: [.linkedLibrary("webpdemux"), .linkedLibrary("webpmux")]),
        .target(name: "CAVIF", dependencies: ["SystemAVIF"], cSettings: c),
        .target(name: "CVips", dependencies: ["SystemVips"], cSettings: c),
        .target(name: "CJXL", dependencies: ["SystemJXL"], cSettings: c),
        .target(
            name: "CPoppler", dependencies: ["SystemPoppler"], cSettings: c,
            linkerSettings: [.linkedLibrary("gio-2.0")]),
        .target(
            name: "CFFmpeg", dependencies: ["SystemFFmpeg"], cSettings: c,
            linkerSettings: [.linkedLibrary("avcodec"), .linkedLibrary("swscale"), .linkedLibrary("avutil")]),
        .target(name: "CSandbox", cSettings: c),
        .target(name: "CFileSystem", cSettings: c),
        .target(name: "CDownloads", cSettings: c),
        .target(name: "CSQLite", dependencies: ["SystemSQLite"], cSettings: c),
        .target(name: "CCurl", dependencies: ["SystemCurl"], cSettings: c),
        .systemLibrary(
            name: "SystemSQLite", path: "Sources/SystemLibraries/SQLite", pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .systemLibrary(
            name: "SystemCurl", path: "Sources/SystemLibraries/Curl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "SystemJPEG", path: "Sources/SystemLibraries/JPEG", pkgConfig: "libjpeg",
            providers: [.apt(["libjpeg62-turbo-dev"]), .brew(["jpeg-turbo"])]),
        .systemLibrary(
            name: "SystemPNG", path: "Sources/SystemLibraries/PNG", pkgConfig: "libpng",
            providers: [.apt(["libpng-dev"]), .brew(["libpng"])]),
        .systemLibrary(
            name: "SystemWebP", path: "Sources/SystemLibraries/WebP", pkgConfig: "libwebpmux",
            providers: [.apt(["libwebp-dev"]), .brew(["webp"])]),
        .systemLibrary(
            name: "SystemAVIF", path: "Sources/SystemLibraries/AVIF", pkgConfig: "libavif",
            providers: [.apt(["libavif-dev"]), .brew(["libavif"])]),
        .systemLibrary(
            name: "SystemVips", path: "Sources/SystemLibraries/Vips", pkgConfig: "vips",
            providers: [.apt(["libvips-dev"]), .brew(["vips"])]),
        .systemLibrary(
            name: "SystemJXL", path: "Sources/SystemLibraries/JXL", pkgConfig: "libjxl",
            providers: [.apt(["libjxl-dev"]), .brew(["jpeg-xl"])]),
        .systemLibrary(
            name: "SystemPoppler", path: "Sources/SystemLibraries/Poppler", pkgConfig: "poppler-glib",
            providers: [.apt(["libpoppler-glib-dev"]), .brew(["poppler"])]),
        .systemLibrary(
            name: "SystemFFmpeg", path: "Sources/SystemLibraries/FFmpeg", pkgConfig: "libavformat",
            providers: [.apt(["libavformat-dev", "libavcodec-dev", "libswscale-dev"]), .brew(["ffmpeg"])]),

        // For tests only: what several of them need, and a program that is its own worker.
        .target(name: "TestSupport", dependencies: ["VitrineCore"], path: "Tests/Support", swiftSettings: swift),
        .executableTarget(
            name: "WorkerTestHost", dependencies: ["VitrineImaging"], path: "Tests/WorkerTestHost",
            swiftSettings: swift),
        .testTarget(name: "VitrineCoreTests", dependencies: ["VitrineCore", "TestSupport"], swiftSettings: swift),
        .testTarget(name: "VitrineDatabaseTests", dependencies: ["VitrineDatabase", "TestSupport"], swiftSettings: swift),
        .testTarget(name: "VitrineCacheTests", dependencies: ["VitrineCache", "TestSupport"], swiftSettings: swift),
        .executableTarget(
            name: "CacheChild", dependencies: ["VitrineCache", "TestSupport"], path: "Tests/CacheChild",
            swiftSettings: swift),
        .testTarget(
            name: "VitrineCacheReliabilityTests",
            dependencies: ["VitrineCache", "VitrineDatabase", "TestSupport", "CacheChild"], swiftSettings: swift),
        .testTarget(
            name: "VitrineImagingTests",
            dependencies: ["VitrineImaging", "VitrineWorker", "TestSupport", "WorkerTestHost"],
            resources: [.copy("Fixtures")], swiftSettings: swift),
        .testTarget(
            name: "VitrineNetworkTests", dependencies: ["VitrineNetwork", "VitrineCache", "TestSupport"],
            swiftSettings: swift),
        .testTarget(
            name: "VitrineThumbnailsTests",
            dependencies: [
                "VitrineThumbnails", "VitrinePDF", "VitrineVideo", "VitrineWorker", "DocumentWire", "TestSupport",
            ],
            resources: [.copy("Fixtures")], swiftSettings: swift),
        .testTarget(
            name: "VitrineDownloadsTests", dependencies: ["VitrineDownloads", "TestSupport", "DownloadChild", "VitrineAgent"],
            swiftSettings: swift),
        .executableTarget(
            name: "DownloadChild", dependencies: ["VitrineDownloads"], path: "Tests/DownloadChild",
            swiftSettings: swift),
        .executableTarget(
            name: "StoreChild", dependencies: ["VitrineStores", "TestSupport"], path: "Tests/StoreChild",
            swiftSettings: swift),
        .testTarget(
            name: "VitrineStoresTests", dependencies: ["VitrineStores", "TestSupport", "StoreChild"],
            swiftSettings: swift),
        .testTarget(name: "VitrineTests", dependencies: ["Vitrine", "TestSupport"], swiftSettings: swift),
        .testTarget(name: "VitrineViewsTests", dependencies: ["VitrineViews", "TestSupport"], swiftSettings: swift),
        .target(
            name: "ModelsSamples", dependencies: ["VitrineModels"], path: "Tests/ModelsSamples", swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsTests", dependencies: ["VitrineModels", "ModelsSamples", "TestSupport"],
            swiftSettings: swift),
        .executableTarget(
            name: "ModelsChild", dependencies: ["VitrineModels", "ModelsSamples", "TestSupport"],
            path: "Tests/ModelsChild", swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsReliabilityTests",
            dependencies: ["VitrineModels", "VitrineDatabase", "TestSupport", "ModelsChild"], swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsEncryptionTests",
            dependencies: ["VitrineModelsEncryption", "ModelsSamples", "TestSupport"], swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsMacrosTests",
            dependencies: [
                "VitrineModels",
                .target(name: "VitrineModelsMacros", condition: .when(traits: ["Macros"])),
                .product(
                    name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax",
                    condition: .when(traits: ["Macros"])),
            ],
            swiftSettings: swift),
        .testTarget(
            name: "VitrineCommandTests",
            dependencies: [
                "VitrineImaging", "VitrineCommand", "VitrineAgent", "VitrineDatabase", "VitrineModels", "VitrineWorker",
                "VitrinePDF", "VitrineVideo", "ModelsSamples", "TestSupport",
            ],
            swiftSettings: swift),
    ],
    swiftLanguageModes: [.v6]
)

// Programs that show how things are done; a test runs them and compares what they print. Their servers, and the test,
// are for Linux.
#if os(Linux)
let examples = [
    "AuditPolicies", "CustomFetcher", "CustomFormat", "CustomType", "Downloads", "ImageGrid", "JSONCache",
    "PrecachedPages", "ProgressiveImages", "SetAndFetch", "SmallThenBig",
]
package.targets += examples.map { name in
    .executableTarget(
        name: name, dependencies: ["Vitrine", "TestSupport"], path: "Examples/\(name)", exclude: ["output.txt"],
        swiftSettings: swift)
}
package.targets.append(
    .testTarget(
        name: "ExamplesTests", dependencies: ["TestSupport", "VitrinePDF"] + examples.map { .byName(name: $0) },
        swiftSettings: swift))
#endif

// `VITRINE_ONLY=VitrineModelsMacrosTests` leaves that target and what it needs: scripts that test one part with other
// settings need not build all the others for it.
if let name = Context.environment["VITRINE_ONLY"] {
    var needed: Set<String> = []
    var pending = [name]
    while let name = pending.popLast() {
        guard needed.insert(name).inserted else { continue }
        for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): pending.append(name)
            default: break
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
