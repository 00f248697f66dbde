// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

// Set by continuous integration: every warning in this package becomes an error.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []
// Tests are not optimised: compiling them so takes longer than running them. All that they test is.
let tests: [SwiftSetting] = swift + [.unsafeFlags(["-Onone"], .when(configuration: .release))]
let c: [CSetting] = [.define("_GNU_SOURCE", .when(platforms: [.linux]))]
// Modules that work on each byte or pixel are optimised in debug builds, where they would be many times as slow, and
// recursive reading of nested objects would need many times the stack.
// SwiftPM allows these flags in dependencies whose tools version is 6.2 or later.
let fast: [SwiftSetting] = swift + [.unsafeFlags(["-O"], .when(configuration: .debug))]
let fastC: [CSetting] = c + [.unsafeFlags(["-O2"], .when(configuration: .debug))]

// Linux has the libraries of the system where the compiler looks for them, and so nothing needs pkg-config. SwiftPM would
// also warn of each absent library of this package, whatever a client uses. With `PKG_CONFIG_PATH`, and on macOS,
// pkg-config tells where they are.
#if os(Linux)
let findsLibraries = Context.environment["PKG_CONFIG_PATH"] != nil
#else
let findsLibraries = true
#endif
func system(_ name: String) -> [Target.Dependency] { findsLibraries ? [.target(name: "CVitrineSystem\(name)")] : [] }
// The headers of GLib, Cairo and Poppler are in directories of their own, some by the name of the processor.
let glib: [CSetting] = findsLibraries ? [] : [
    .unsafeFlags(
        [
            "/usr/include/glib-2.0", "/usr/lib/x86_64-linux-gnu/glib-2.0/include",
            "/usr/lib/aarch64-linux-gnu/glib-2.0/include", "/usr/lib64/glib-2.0/include", "/usr/lib/glib-2.0/include",
            "/usr/include/cairo", "/usr/include/poppler/glib", "/usr/include/pango-1.0", "/usr/include/harfbuzz",
            "/usr/include/freetype2", "/usr/include/fribidi",
        ].flatMap { ["-isystem", $0] })
]

// Fedora has the headers of FFmpeg in a directory of their own.
let ffmpeg: [CSetting] = findsLibraries ? [] : [.unsafeFlags(["-isystem", "/usr/include/ffmpeg"])]

func codec(_ name: String, _ libraries: [Target.Dependency] = [], settings: [SwiftSetting] = fast) -> Target {
    .target(
        name: name, dependencies: ["VitrineCore", "VitrineImageCore", "VitrinePixels", "CVitrinePixels"] + libraries,
        swiftSettings: settings)
}

// None of them knows another one. To leave one out of a build, delete its folder and its line here.
let codecs = [
    codec("VitrineJPEG", [.target(name: "CVitrineJPEG", condition: .when(traits: ["SystemCodecs"]))]),
    codec("VitrinePNG", [.target(name: "CVitrinePNG", condition: .when(traits: ["SystemCodecs"]))]),
    codec("VitrineHEIF", [.target(name: "CVitrineAVIF", condition: .when(traits: ["SystemCodecs"]))]),
    codec("VitrineJXL"),
    codec("VitrineRaster", [.target(name: "CVitrineWebP", condition: .when(traits: ["SystemCodecs"]))]),
    codec("VitrineSVG", settings: swift),
    codec("VitrineContainers", settings: swift),
]
let codecDependencies = codecs.map { Target.Dependency.target(name: $0.name) }

let package = Package(
    name: "Vitrine",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .visionOS(.v2), .watchOS(.v11)],
    products: [
        .library(name: "Vitrine", targets: ["Vitrine"]),
        .library(name: "VitrineCore", targets: ["VitrineCore"]),
        .library(name: "VitrineCache", targets: ["VitrineCache"]),
        // Clients may read the rows of a JPEG file.
        .library(
            name: "VitrineImaging",
            targets: ["VitrineImaging", "VitrineImageCore"] + codecs.map(\.name).filter { $0 == "VitrineJPEG" }),
        .library(name: "VitrineNetwork", targets: ["VitrineNetwork"]),
        .library(name: "VitrineDownloads", targets: ["VitrineDownloads"]),
        .library(name: "VitrinePipeline", targets: ["VitrinePipeline"]),
        .library(name: "VitrineStores", targets: ["VitrineStores"]),
        .library(name: "VitrineModels", targets: ["VitrineModels"]),
        .library(name: "VitrineViews", targets: ["VitrineViews"]),
        .library(name: "VitrineWebPages", targets: ["VitrineWebPages"]),
        .library(name: "VitrineCompatibility", targets: ["VitrineCompatibility"]),
        .library(name: "VitrineModelsEncryption", targets: ["VitrineModelsEncryption"]),
        .executable(name: "vitrine", targets: ["VitrineCommand"]),
        .executable(name: "vitrine-agent", targets: ["VitrineAgent"]),
        .executable(name: "vitrine-worker", targets: ["VitrineWorker"]),
        .executable(name: "vitrine-pdf", targets: ["VitrinePDF"]),
        .executable(name: "vitrine-video", targets: ["VitrineVideo"]),
        .executable(name: "vitrine-text", targets: ["VitrineText"]),
    ],
    // Only one trait is enabled by default: SwiftPM 6.3 and earlier pass several to the compiler in a random order, so
    // that clients recompile the package on each build. `Macros` and `Encryption` build swift-syntax and swift-crypto.
    traits: [
        .trait(name: "SystemCodecs", description: "Codecs of libjpeg-turbo, libpng, libwebp and libavif."),
        .trait(name: "Macros", description: "@Persistable and its companions in VitrineModels; builds swift-syntax."),
        .trait(name: "Encryption", description: "Ciphers for the values of VitrineModels; builds swift-crypto."),
        .default(enabledTraits: ["SystemCodecs"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
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
                "VitrinePipeline", "VitrineStores", "VitrineViews",
            ],
            swiftSettings: swift),
        .target(name: "VitrineDigests", swiftSettings: fast),
        .target(
            name: "VitrineCore",
            dependencies: [
                .product(name: "Logging", package: "swift-log"),
                .product(name: "DequeModule", package: "swift-collections"),
                "CVitrineFileSystem", "VitrineDigests",
            ],
            swiftSettings: swift
        ),
        .target(name: "VitrineDatabase", dependencies: ["VitrineCore", "CVitrineSQLite"], swiftSettings: swift),
        .target(
            name: "VitrineCache",
            dependencies: ["VitrineCore", "VitrineDatabase", .product(name: "Metrics", package: "swift-metrics")],
            swiftSettings: swift
        ),
        // Arithmetic on single pixels, for the other files of VitrineImaging to inline in debug builds.
        .target(name: "VitrinePixels", swiftSettings: fast),
        // What all codecs share: pictures, geometry, colour, resampling, limits, and the protocols of decoders.
        .target(
            name: "VitrineImageCore",
            dependencies: ["VitrineCore", "VitrinePixels", "CVitrinePixels", "CVitrineSandbox"],
            swiftSettings: fast),
        .target(
            name: "VitrineWorkers", dependencies: ["VitrineCore", "VitrineImageCore", "CVitrineSandbox"],
            swiftSettings: swift),
        .target(
            name: "VitrineImaging",
            dependencies: ["VitrineCore", "VitrineImageCore", "VitrineWorkers"] + codecDependencies,
            swiftSettings: swift),
        .target(
            name: "VitrineNetwork",
            dependencies: [
                "VitrineCore", "VitrineCache", .target(name: "CVitrineCurl", condition: .when(platforms: [.linux])),
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: swift
        ),
        .target(
            name: "VitrineDownloads",
            dependencies: ["VitrineCore", "VitrineDatabase", "VitrineNetwork", "CVitrineDownloads"],
            swiftSettings: swift),
        .target(
            name: "VitrinePipeline",
            dependencies: [
                "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineNetwork", "VitrineHelperProtocol",
                "CVitrineSandbox",
            ],
            swiftSettings: swift),
        .target(
            name: "VitrineStores",
            dependencies: [
                "VitrineCore", "VitrineDatabase", "VitrineCache", "VitrineImaging", "VitrinePipeline", "CVitrineFileSystem",
            ],
            swiftSettings: swift),
        // Pictures of web pages by an installed browser. A product of its own, which few need.
        .target(
            name: "VitrineWebPages", dependencies: ["VitrineCore", "VitrineImaging", "VitrineNetwork", "VitrinePipeline"],
            swiftSettings: swift),
        // What the clients in VitrinePipeline and the helpers for documents say to each other.
        .target(name: "VitrineHelperProtocol", dependencies: ["VitrineImaging"], swiftSettings: swift),
        .target(
            name: "VitrineModels",
            dependencies: [
                "VitrineCore", "VitrineDatabase", "VitrineCache",
                .target(name: "VitrineModelsMacros", condition: .when(traits: ["Macros"])),
            ],
            swiftSettings: fast),
        .target(
            name: "VitrineViews",
            dependencies: ["VitrineCore", "VitrineCache", "VitrineImaging", "VitrineNetwork", "VitrinePipeline"],
            swiftSettings: swift),
        // Loads in the shapes of other libraries, for programs that are migrated. Nothing else depends on it.
        .target(
            name: "VitrineCompatibility",
            dependencies: [
                "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineNetwork", "VitrinePipeline", "VitrineStores",
                "VitrineModels",
            ],
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
                "VitrineCore", "VitrineCache", "VitrineDatabase", "VitrineImaging", "VitrineModels", "VitrineNetwork",
                "VitrineDownloads", "VitrinePipeline", "VitrineStores", "VitrineWebPages", "VitrinePixels",
                "CVitrineSandbox",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: swift
        ),
        .executableTarget(name: "VitrineAgent", dependencies: ["VitrineCore", "VitrineDownloads"], swiftSettings: swift),
        .executableTarget(
            name: "VitrineWorker",
            dependencies: [
                "VitrineImaging", "CVitrineVips", "CVitrineJP2", "CVitrineTIFF", "CVitrineJXL", "CVitrineRaw",
                "CVitrineArchive", "CVitrineSandbox",
            ] + codecDependencies,
            swiftSettings: swift),
        // A program of its own, as poppler is under the GPL: nothing else may depend on CVitrinePoppler.
        .executableTarget(
            name: "VitrinePDF",
            dependencies: ["VitrineImaging", "VitrineHelperProtocol", "CVitrinePoppler", "CVitrineSandbox"],
            swiftSettings: swift),
        // A program of its own, as builds of FFmpeg may be under the GPL: nothing else may depend on CVitrineFFmpeg.
        .executableTarget(
            name: "VitrineVideo",
            dependencies: ["VitrineCore", "VitrineImaging", "VitrineHelperProtocol", "CVitrineFFmpeg"],
            swiftSettings: swift),
        // A program of its own, so that no other loads pango and its fonts.
        .executableTarget(
            name: "VitrineText", dependencies: ["VitrineImaging", "VitrineHelperProtocol", "CVitrineText"],
            swiftSettings: swift),
        // For `swift build --target VitrinePrograms`, which builds the command and its helpers, and nothing else, at once.
        .target(
            name: "VitrinePrograms",
            dependencies: ["VitrineCommand", "VitrineAgent", "VitrineWorker", "VitrinePDF", "VitrineVideo", "VitrineText"],
            swiftSettings: swift),

        // Thin C shims: plain types in their headers, all varargs and longjmp inside.
        .target(
            name: "CVitrineJPEG", dependencies: system("JPEG"), cSettings: fastC,
            linkerSettings: [.linkedLibrary("jpeg")]),
        .target(
            name: "CVitrinePNG", dependencies: system("PNG"), cSettings: fastC,
            linkerSettings: [.linkedLibrary("png16")]),
        .target(
            name: "CVitrineWebP", dependencies: system("WebP"), cSettings: fastC,
            linkerSettings: [.linkedLibrary("webp"), .linkedLibrary("webpdemux"), .linkedLibrary("webpmux")]),
        // Linked on Apple platforms; loaded when first needed on Linux, as libcurl is.
        .target(
            name: "CVitrineAVIF", dependencies: system("AVIF") + ["CVitrineLibraries"], cSettings: fastC,
            linkerSettings: [.linkedLibrary("avif", .when(platforms: [.macOS]))]),
        .target(
            name: "CVitrineVips", dependencies: system("Vips"), cSettings: fastC + glib,
            linkerSettings: [
                .linkedLibrary("vips"), .linkedLibrary("gio-2.0"), .linkedLibrary("gobject-2.0"),
                .linkedLibrary("glib-2.0"),
            ]),
        .target(
            name: "CVitrineJP2", dependencies: system("OpenJPEG") + ["CVitrinePixels"], cSettings: fastC,
            linkerSettings: [.linkedLibrary("openjp2")]),
        .target(
            name: "CVitrineTIFF", dependencies: system("TIFF") + ["CVitrinePixels"], cSettings: fastC,
            linkerSettings: [.linkedLibrary("tiff")]),
        .target(
            name: "CVitrineJXL", dependencies: system("JXL"), cSettings: fastC,
            linkerSettings: [.linkedLibrary("jxl")]),
        .target(
            name: "CVitrinePoppler", dependencies: system("Poppler"), cSettings: fastC + glib,
            linkerSettings: [
                .linkedLibrary("poppler-glib"), .linkedLibrary("cairo"), .linkedLibrary("gio-2.0"),
                .linkedLibrary("gobject-2.0"), .linkedLibrary("glib-2.0"),
            ]),
        .target(
            name: "CVitrineFFmpeg", dependencies: system("FFmpeg"), cSettings: fastC + ffmpeg,
            linkerSettings: ["avformat", "avcodec", "swscale", "avutil"].map { .linkedLibrary($0) }),
        .target(
            name: "CVitrineText", dependencies: system("Pango"), cSettings: fastC + glib,
            linkerSettings: ["pangocairo-1.0", "pango-1.0", "gobject-2.0", "glib-2.0", "cairo", "harfbuzz", "freetype", "m"]
                .map { .linkedLibrary($0) }),
        .target(
            name: "CVitrineArchive", dependencies: system("Archive"), cSettings: c,
            linkerSettings: [.linkedLibrary("archive")]),
        // LibRaw is loaded at run time: it is optional, and needed by few.
        .target(
            name: "CVitrineRaw", cSettings: fastC,
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        .target(name: "CVitrinePixels", cSettings: fastC),
        .target(name: "CVitrineSandbox", cSettings: c),
        .target(name: "CVitrineFileSystem", cSettings: c),
        .target(name: "CVitrineDownloads", cSettings: c),
        .target(
            name: "CVitrineLibraries", cSettings: c,
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        .target(
            name: "CVitrineSQLite", dependencies: system("SQLite") + ["CVitrineFileSystem"], cSettings: c,
            linkerSettings: [.linkedLibrary("sqlite3")]),
        .target(name: "CVitrineCurl", dependencies: system("Curl") + ["CVitrineLibraries"], cSettings: c),

        // For tests only: what several of them need, and a program that is its own worker.
        .target(
            name: "TestSupport", dependencies: ["VitrineCore", "VitrineDatabase", "CVitrineSQLite"], path: "Tests/Support",
            swiftSettings: swift),
        .executableTarget(
            name: "WorkerTestHost", dependencies: ["VitrineImaging"], path: "Tests/WorkerTestHost",
            swiftSettings: swift),
        // Mutated bytes for every parser of the host's process; see `Scripts/fuzz`.
        .executableTarget(
            name: "VitrineFuzz",
            dependencies: [
                "VitrineCore", "VitrineCache", "VitrineImaging", "VitrineModels", "VitrineNetwork", "VitrineDownloads",
                "VitrinePipeline", "VitrineWebPages", "VitrineCompatibility", "VitrineHelperProtocol", "ModelsSamples",
                "TestSupport",
            ],
            path: "Tests/Fuzz", swiftSettings: swift),
        // Costs of the scheduling primitives, which are internal to this package; see `Benchmarks/README.md`.
        .executableTarget(
            name: "CoreBenchmark", dependencies: ["VitrineCore"], path: "Tests/CoreBenchmark", swiftSettings: swift),
        // Uses all stores at the command of `Checks/Faults/run`.
        .executableTarget(
            name: "FaultProgram", dependencies: ["VitrineStores", "VitrineModels", "VitrineCache"],
            path: "Checks/Faults/Program", swiftSettings: swift),
        .testTarget(
            name: "VitrineCoreTests", dependencies: ["VitrineCore", "VitrineCompatibility", "TestSupport"],
            swiftSettings: tests),
        .testTarget(name: "VitrineDatabaseTests", dependencies: ["VitrineDatabase", "TestSupport"], swiftSettings: tests),
        .testTarget(
            name: "VitrineCacheTests", dependencies: ["VitrineCache", "VitrineCompatibility", "TestSupport"],
            swiftSettings: tests),
        .executableTarget(
            name: "CacheChild", dependencies: ["VitrineCache", "VitrineDatabase", "VitrineStores", "TestSupport"],
            path: "Tests/CacheChild",
            swiftSettings: swift),
        .testTarget(
            name: "VitrineCacheReliabilityTests",
            dependencies: ["VitrineCache", "VitrineDatabase", "VitrineStores", "TestSupport", "CacheChild"],
            swiftSettings: tests),
        .testTarget(
            name: "VitrineImagingTests",
            dependencies: [
                "VitrineImaging", "CVitrinePixels", "VitrineWorker", "VitrineVideo", "TestSupport", "WorkerTestHost",
                "VitrineFuzz", "VitrineCompatibility",
            ],
            resources: [.copy("Fixtures")], swiftSettings: tests),
        .testTarget(
            name: "VitrineNetworkTests",
            dependencies: ["VitrineNetwork", "VitrineCache", "VitrineCompatibility", "TestSupport"],
            swiftSettings: tests),
        .testTarget(
            name: "VitrinePipelineTests",
            dependencies: [
                "VitrinePipeline", "VitrineWebPages", "VitrineNetwork", "VitrinePDF", "VitrineVideo", "VitrineText", "VitrineWorker",
                "VitrineHelperProtocol", "VitrineCompatibility", "TestSupport",
            ],
            resources: [.copy("Fixtures")], swiftSettings: tests),
        .testTarget(
            name: "VitrineDownloadsTests", dependencies: ["VitrineDownloads", "TestSupport", "DownloadChild", "VitrineAgent"],
            swiftSettings: tests),
        .executableTarget(
            name: "DownloadChild", dependencies: ["VitrineDownloads"], path: "Tests/DownloadChild",
            swiftSettings: swift),
        .executableTarget(
            name: "StoreChild", dependencies: ["VitrineStores", "TestSupport"], path: "Tests/StoreChild",
            swiftSettings: swift),
        .testTarget(
            name: "VitrineStoresTests",
            dependencies: ["VitrineStores", "VitrineDatabase", "VitrineCompatibility", "TestSupport", "StoreChild"],
            swiftSettings: tests),
        .testTarget(
            name: "VitrineTests", dependencies: ["Vitrine", "TestSupport"], resources: [.copy("Fixtures")],
            swiftSettings: tests),
        .testTarget(name: "VitrineViewsTests", dependencies: ["VitrineViews", "TestSupport"], swiftSettings: tests),
        .testTarget(
            name: "VitrineCompatibilityTests",
            dependencies: ["VitrineCompatibility", "Vitrine", "TestSupport"], swiftSettings: tests),
        .target(
            name: "ModelsSamples", dependencies: ["VitrineModels"], path: "Tests/ModelsSamples", swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsTests",
            dependencies: ["VitrineModels", "VitrineCompatibility", "ModelsSamples", "TestSupport"],
            swiftSettings: tests),
        .executableTarget(
            name: "ModelsChild", dependencies: ["VitrineModels", "ModelsSamples", "TestSupport"],
            path: "Tests/ModelsChild", swiftSettings: swift),
        .testTarget(
            name: "VitrineModelsReliabilityTests",
            dependencies: ["VitrineModels", "VitrineDatabase", "TestSupport", "ModelsChild"], swiftSettings: tests),
        .testTarget(
            name: "VitrineCommandTests",
            dependencies: [
                "VitrineImaging", "VitrineCommand", "VitrineAgent", "VitrineDatabase", "VitrineModels", "VitrineWorker",
                "VitrinePDF", "VitrineVideo", "VitrineText", "VitrineCompatibility", "ModelsSamples", "TestSupport",
                "WorkerTestHost",
            ],
            swiftSettings: tests),
    ],
    swiftLanguageModes: [.v6]
)
package.targets += codecs

if findsLibraries {
    package.targets += [
        ("SQLite", "sqlite3", "libsqlite3-dev", "sqlite"),
        ("Curl", "libcurl", "libcurl4-openssl-dev", "curl"),
        ("JPEG", "libjpeg", "libjpeg-dev", "jpeg-turbo"),
        ("PNG", "libpng", "libpng-dev", "libpng"),
        ("WebP", "libwebpmux", "libwebp-dev", "webp"),
        ("AVIF", "libavif", "libavif-dev", "libavif"),
        ("Vips", "vips", "libvips-dev", "vips"),
        ("OpenJPEG", "libopenjp2", "libopenjp2-7-dev", "openjpeg"),
        ("TIFF", "libtiff-4", "libtiff-dev", "libtiff"),
        ("JXL", "libjxl", "libjxl-dev", "jpeg-xl"),
        ("Archive", "libarchive", "libarchive-dev", "libarchive"),
        ("Poppler", "poppler-glib", "libpoppler-glib-dev", "poppler"),
        ("Pango", "pangocairo", "libpango1.0-dev", "pango"),
        ("FFmpeg", "libavformat", "libavformat-dev", "ffmpeg"),
    ].map { name, file, debian, brew in
        .systemLibrary(
            name: "CVitrineSystem\(name)", path: "Sources/SystemLibraries/\(name)", pkgConfig: file,
            providers: [.apt([debian]), .brew([brew])])
    }
}
