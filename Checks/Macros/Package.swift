// swift-tools-version: 6.2
import PackageDescription

// The tests of the macros of VitrineModels, as a client that enables the trait `Macros`.
let strict = Context.environment["VITRINE_STRICT"] == "1"
let swift: [SwiftSetting] = strict ? [.treatAllWarnings(as: .error)] : []

let package = Package(
    name: "MacroChecks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Vitrine", path: "../..", traits: ["Macros"]),
        .package(url: "https://github.com/swiftlang/swift-syntax", "602.0.0"..<"604.0.0"),
    ],
    targets: [
        // A symbolic link to the sources of the macros, because a macro of another package cannot be imported.
        .target(
            name: "MacroImplementation",
            dependencies: [.product(name: "SwiftSyntaxMacros", package: "swift-syntax")],
            exclude: ["Plugin.swift"],
            swiftSettings: swift + [.define("Macros")]),
        .testTarget(
            name: "MacroTests",
            dependencies: [
                "MacroImplementation",
                .product(name: "VitrineModels", package: "Vitrine"),
                .product(name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax"),
            ],
            swiftSettings: swift),
    ],
    swiftLanguageModes: [.v6]
)
