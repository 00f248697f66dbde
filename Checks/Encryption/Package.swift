// swift-tools-version: 6.2
import PackageDescription

// The tests of VitrineModelsEncryption, as a client that enables the trait `Encryption`.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

let package = Package(
    name: "EncryptionChecks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Vitrine", path: "../..", traits: ["Encryption"])],
    targets: [
        .testTarget(
            name: "EncryptionTests",
            dependencies: [
                .product(name: "VitrineModels", package: "Vitrine"),
                .product(name: "VitrineModelsEncryption", package: "Vitrine"),
            ],
            swiftSettings: swift)
    ],
    swiftLanguageModes: [.v6]
)
