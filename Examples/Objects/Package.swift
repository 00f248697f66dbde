// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Objects",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Vitrine", path: "../..", traits: ["Macros"])],
    targets: [
        .executableTarget(name: "Objects", dependencies: [.product(name: "VitrineModels", package: "Vitrine")])
    ],
    swiftLanguageModes: [.v6]
)
