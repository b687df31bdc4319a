// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// With CURLEW_STRICT, as `.ci/full strict` sets it, the programs are compiled as the strictest client is.
let strict: [SwiftSetting] =
    Context.environment["CURLEW_STRICT"] == nil
    ? []
    : [
        .strictMemorySafety(), .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault"),
    ]

// No example needs a trait. With one here that another package asks for, the same folder has one build of the library for both.
let traits = Set((Context.environment["CURLEW_TRAITS"] ?? "").split(separator: ",").map { Package.Dependency.Trait(name: String($0)) })

// A package of its own, so that nobody who depends on Curlew builds it. `scripts/demo` runs it.
let package = Package(
    name: "curlew-examples",
    platforms: [.macOS(.v14)],
    products: [
        .executable(name: "curlew-demo", targets: ["Demo"]),
        .executable(name: "requests", targets: ["Requests"]),
        .executable(name: "operations", targets: ["Operations"]),
        .executable(name: "services", targets: ["Services"]),
        .executable(name: "waterfall", targets: ["Waterfall"]),
        .executable(name: "queue", targets: ["Queue"]),
        .executable(name: "mirror", targets: ["Mirror"]),
        .executable(name: "webhooks", targets: ["Webhooks"]),
        .executable(name: "chat", targets: ["Chat"]),
        .executable(name: "assistant", targets: ["Assistant"]),
        .executable(name: "urlsession-json", targets: ["URLSessionJSON"]),
        .executable(name: "urlsession-download", targets: ["URLSessionDownload"]),
        .executable(name: "urlsession-upload", targets: ["URLSessionUpload"]),
        .executable(name: "urlsession-events", targets: ["URLSessionEvents"]),
        .executable(name: "urlsession-chat", targets: ["URLSessionChat"]),
    ],
    dependencies: [.package(name: "curlew", path: "..", traits: traits)],
    targets: [
        // The server of CurlewTesting, and what else the examples share.
        .target(
            name: "DemoServer", dependencies: [.product(name: "CurlewTesting", package: "curlew")], path: "Sources/LoopbackServer"),
        .executableTarget(
            name: "Demo",
            dependencies: ["DemoServer", .product(name: "Curlew", package: "curlew")]),
        // Requests that are objects: `swift run --package-path Examples requests`.
        .executableTarget(
            name: "Requests",
            dependencies: ["DemoServer", .product(name: "CurlewRequests", package: "curlew")]),
        // Requests that are operations: `swift run --package-path Examples operations`.
        .executableTarget(
            name: "Operations",
            dependencies: ["DemoServer", .product(name: "CurlewOperations", package: "curlew")]),
        // Requests that are values: `swift run --package-path Examples services`.
        .executableTarget(
            name: "Services",
            dependencies: ["DemoServer", .product(name: "CurlewServices", package: "curlew")]),
        // A session recorded and drawn: `swift run --package-path Examples waterfall FOLDER`.
        .executableTarget(
            name: "Waterfall",
            dependencies: ["DemoServer", .product(name: "Curlew", package: "curlew"), .product(name: "CurlewHAR", package: "curlew")]),
        // Programs to copy, each with a README: a worker with a queue, a mirror, a service that delivers webhooks, a chat over
        // WebSocket, a client of a language model.
        .executableTarget(
            name: "Queue", dependencies: ["DemoServer", .product(name: "Curlew", package: "curlew")], exclude: ["README.md"]),
        .executableTarget(
            name: "Mirror",
            dependencies: [
                "DemoServer", .product(name: "Curlew", package: "curlew"), .product(name: "CurlewDownloads", package: "curlew"),
            ],
            exclude: ["README.md"]),
        .executableTarget(
            name: "Webhooks",
            dependencies: [
                .product(name: "Curlew", package: "curlew"), .product(name: "CurlewResilience", package: "curlew"),
                .product(name: "CurlewSigning", package: "curlew"), .product(name: "CurlewTesting", package: "curlew"),
            ],
            exclude: ["README.md"]),
        .executableTarget(
            name: "Chat",
            dependencies: [
                .product(name: "Curlew", package: "curlew"), .product(name: "CurlewWebSocket", package: "curlew"),
                .product(name: "CurlewTesting", package: "curlew"),
            ],
            exclude: ["README.md"]),
        .executableTarget(
            name: "Assistant",
            dependencies: ["DemoServer", .product(name: "Curlew", package: "curlew"), .product(name: "CurlewEvents", package: "curlew")],
            exclude: ["README.md"]),
        // Programs written for Apple's systems, by one import: each main.swift knows Foundation's API alone, its server is in another file.
        .executableTarget(
            name: "URLSessionJSON", dependencies: ["DemoServer", .product(name: "CurlewURLSession", package: "curlew")]),
        .executableTarget(
            name: "URLSessionDownload", dependencies: ["DemoServer", .product(name: "CurlewURLSession", package: "curlew")]),
        .executableTarget(
            name: "URLSessionUpload", dependencies: ["DemoServer", .product(name: "CurlewURLSession", package: "curlew")]),
        .executableTarget(
            name: "URLSessionChat", dependencies: [.product(name: "CurlewURLSession", package: "curlew")], exclude: ["room.py"]),
        .executableTarget(
            name: "URLSessionEvents", dependencies: ["DemoServer", .product(name: "CurlewURLSession", package: "curlew")]),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets { target.swiftSettings = [.enableUpcomingFeature("ExistentialAny")] + strict }
