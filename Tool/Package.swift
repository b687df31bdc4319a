// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// The program curlew, a package of its own, so that who uses the library does not fetch what only the program needs.

/// Whoever depends on one of the library's products depends on each product that it imports, as any client of it does.
func library(_ names: String...) -> [Target.Dependency] {
    names.map { .product(name: $0, package: "curlew") }
}

let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "curlew-tool",
    platforms: [.macOS(.v13)],
    products: [.executable(name: "curlew", targets: ["CurlewTool"])],
    traits: [
        .trait(name: "Brotli", description: "Decodes bodies in brotli (br), with the system's libbrotlidec."),
        .trait(name: "Zstd", description: "Decodes bodies in zstd, with the system's libzstd."),
        // A pasted command of a browser asks for both.
        .default(enabledTraits: ["Brotli", "Zstd"]),
    ],
    dependencies: [
        // A link to the folder above: a package is known by the last part of its path, and a folder "tool" would have that of this one.
        .package(
            path: "curlew",
            traits: [
                .trait(name: "Brotli", condition: .when(traits: ["Brotli"])), .trait(name: "Zstd", condition: .when(traits: ["Zstd"])),
            ]),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .executableTarget(
            name: "CurlewTool",
            dependencies: library(
                "Curlew", "CurlewCaching", "CurlewDownloads", "CurlewEvents", "CurlewHAR", "CurlewSigning", "CurlewTesting",
                "CurlewWebSocket") + [
                    .product(name: "ArgumentParser", package: "swift-argument-parser")
                ],
            swiftSettings: settings),
        .testTarget(
            name: "CurlewToolTests", dependencies: ["CurlewTool"] + library("Curlew", "CurlewDownloads", "CurlewSigning", "CurlewTesting"),
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
