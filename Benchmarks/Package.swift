// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "vitrine-cache-proxy", targets: ["CacheProxy"])],
    dependencies: [
        .package(name: "Vitrine", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .executableTarget(
            name: "VitrineBenchmarks",
            dependencies: [
                "CPeers",
                .product(name: "VitrineCore", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .executableTarget(
            name: "DiskBenchmark",
            dependencies: [
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
            ]),
        .executableTarget(
            name: "CacheBenchmark",
            dependencies: [
                "CAllocations",
                .product(name: "VitrineCore", package: "Vitrine"),
                .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineStores", package: "Vitrine"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .target(name: "CAllocations"),
        .executableTarget(
            name: "DocumentBenchmark",
            dependencies: [
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
            ]),
        .executableTarget(
            name: "CacheProxy",
            dependencies: [
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .executableTarget(
            name: "NetworkBenchmark",
            dependencies: [
                "CNetworkPeer",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineNetwork", package: "Vitrine"),
            ]),
        .target(name: "CNetworkPeer", dependencies: ["PeerCurl"]),
        .systemLibrary(
            name: "PeerCurl", path: "Sources/PeerCurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .executableTarget(
            name: "ThumbnailsBenchmark",
            dependencies: [
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
            ]),
        .executableTarget(
            name: "DownloadsBenchmark",
            dependencies: [.product(name: "VitrineDownloads", package: "Vitrine")]),
        .executableTarget(
            name: "StoreBenchmark",
            dependencies: [
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineStores", package: "Vitrine"),
            ]),
        .executableTarget(
            name: "ModelsBenchmark",
            dependencies: [
                .product(name: "VitrineModels", package: "Vitrine"), .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        .executableTarget(
            name: "ViewsBenchmark",
            dependencies: [
                "CAllocations",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
                .product(name: "VitrineViews", package: "Vitrine"),
            ]),
        .target(name: "CPeers", dependencies: ["PeerVips", "PeerJPEG"]),
        .systemLibrary(
            name: "PeerVips", path: "Sources/PeerVips", pkgConfig: "vips", providers: [.apt(["libvips-dev"])]),
        .systemLibrary(
            name: "PeerJPEG", path: "Sources/PeerJPEG", pkgConfig: "libjpeg",
            providers: [.apt(["libjpeg-dev"])]),
    ],
    swiftLanguageModes: [.v6]
)
