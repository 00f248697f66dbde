// swift-tools-version: 6.2
import PackageDescription

// The image server: a library of routes for Hummingbird applications, a program, and a client of S3 stores. A package of
// its own, so that nobody else builds SwiftNIO and Hummingbird.
let swift: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"), .treatAllWarnings(as: .error),
]

let package = Package(
    name: "VitrineServer",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "VitrineServer", targets: ["VitrineServer"]),
        .library(name: "VitrineFleet", targets: ["VitrineFleet"]),
        .library(name: "VitrineS3", targets: ["VitrineS3"]),
        .executable(name: "vitrine-server", targets: ["vitrine-server"]),
    ],
    dependencies: [
        .package(name: "Vitrine", path: ".."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Also the files of its pages, which its sources include.
        .target(name: "CVitrineServer", exclude: ["pages"]),
        .target(
            name: "VitrineServer",
            dependencies: [
                "CVitrineServer", "VitrineFleet", "VitrineS3",
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HummingbirdHTTP2", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"), .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"), .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            swiftSettings: swift),
        // A store that speaks the protocol of Amazon S3. It needs no web server.
        .target(
            name: "VitrineS3",
            dependencies: [
                .product(name: "VitrineCore", package: "Vitrine"), .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: swift),
        .executableTarget(
            name: "vitrine-server",
            dependencies: [
                "VitrineServer", .product(name: "Hummingbird", package: "hummingbird"),
                // The programs that decode, beside this one.
                .product(name: "vitrine-worker", package: "Vitrine"), .product(name: "vitrine-pdf", package: "Vitrine"),
                .product(name: "vitrine-video", package: "Vitrine"), .product(name: "vitrine-text", package: "Vitrine"),
            ],
            swiftSettings: swift),
        // The smallest application with the routes, by public API alone.
        .executableTarget(
            name: "images-in-an-application",
            dependencies: ["VitrineServer", .product(name: "Hummingbird", package: "hummingbird")],
            swiftSettings: swift),
        // Takes images of strangers, and serves their thumbnails. It needs none of the targets here.
        .executableTarget(
            name: "uploads-in-an-application",
            dependencies: [
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrineStores", package: "Vitrine"),
                .product(name: "vitrine-worker", package: "Vitrine"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ],
            swiftSettings: swift),
        .target(
            name: "VitrineFleet",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOTLS", package: "swift-nio"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"), .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: swift),
        // A node of a fleet as a process of its own, which the tests kill and freeze.
        .executableTarget(
            name: "fleet-node",
            dependencies: ["VitrineFleet", .product(name: "NIOCore", package: "swift-nio")],
            path: "Tests/fleet-node", swiftSettings: swift),
        // What `Benchmarks/measure-fleet` measures.
        .executableTarget(
            name: "fleet-benchmark",
            dependencies: [
                "VitrineFleet", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            path: "Benchmarks/Fleet", swiftSettings: swift),
        // Processes that tests start, and Redis servers: alone, in clusters and with sentinels.
        .target(
            name: "ServerTestSupport",
            dependencies: [
                "VitrineFleet", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            path: "Tests/ServerTestSupport", swiftSettings: swift),
        .testTarget(
            name: "VitrineFleetTests",
            dependencies: [
                "VitrineFleet", "ServerTestSupport", "fleet-node", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: swift),
        .testTarget(
            name: "VitrineServerTests",
            dependencies: [
                "VitrineServer", "VitrineFleet", "VitrineS3", "ServerTestSupport",
                .product(name: "VitrineCore", package: "Vitrine"),
                .product(name: "VitrineCache", package: "Vitrine"),
                .product(name: "VitrineImaging", package: "Vitrine"),
                .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "VitrinePipeline", package: "Vitrine"),
                .product(name: "VitrineWebPages", package: "Vitrine"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdTesting", package: "hummingbird"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: swift),
        .testTarget(
            name: "VitrineS3Tests",
            dependencies: [
                "VitrineS3", "ServerTestSupport", .product(name: "VitrineCore", package: "Vitrine"),
                .product(name: "VitrineNetwork", package: "Vitrine"),
                .product(name: "VitrineStores", package: "Vitrine"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: swift),
    ],
    swiftLanguageModes: [.v6]
)
