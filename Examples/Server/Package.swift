// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Curlew in services, beside the packages that they consist of. A package of its own, because building it takes minutes:
// `.ci/full server-examples` builds and runs it, by scripts/server-examples.
let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")]
let curlew: Target.Dependency = .product(name: "Curlew", package: "curlew")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: [Target.Dependency] = [
    .product(name: "CurlewLifecycle", package: "curlew"), .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
]
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")

let package = Package(
    name: "curlew-server-examples",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "imports", targets: ["Imports"]),
        .executable(name: "handler", targets: ["Handler"]),
        .executable(name: "gateway", targets: ["Gateway"]),
        .executable(name: "worker", targets: ["Worker"]),
        .executable(name: "fan-out", targets: ["FanOut"]),
        .executable(name: "upload", targets: ["Upload"]),
        .executable(name: "resume", targets: ["Resume"]),
    ],
    dependencies: [
        .package(name: "curlew", path: "../..", traits: ["HTTPTypes", "Lifecycle"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
    ],
    targets: [
        // The server of CurlewTesting, and what else the examples share.
        .target(
            name: "ExampleServer", dependencies: [.product(name: "CurlewTesting", package: "curlew")], path: "Sources/LoopbackServer"),
        // Runs a service of Hummingbird while a program calls it.
        .target(
            name: "ExampleService",
            dependencies: [hummingbird, logging, .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")],
            path: "Sources/Service", swiftSettings: settings),
        // Names of each module, in one file.
        .executableTarget(
            name: "Imports",
            dependencies: [
                curlew, hummingbird, logging, httpTypes,
                .product(name: "CurlewHTTPTypes", package: "curlew"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // A handler that calls two services, and passes its deadline and its call's id on.
        .executableTarget(
            name: "Handler", dependencies: [curlew, hummingbird, httpTypes, "ExampleService"] + lifecycle, exclude: ["README.md"],
            swiftSettings: settings),
        // A route that forwards to another server.
        .executableTarget(
            name: "Gateway",
            dependencies: [
                curlew, hummingbird, httpTypes, "ExampleServer", "ExampleService",
                .product(name: "CurlewHTTPTypes", package: "curlew"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: settings),
        // A worker whose token is refreshed.
        .executableTarget(name: "Worker", dependencies: [curlew, "ExampleServer"], swiftSettings: settings),
        // A thousand requests, fifty at a time.
        .executableTarget(name: "FanOut", dependencies: [curlew, "ExampleServer"], swiftSettings: settings),
        // A sequence, and a form with files.
        .executableTarget(name: "Upload", dependencies: [curlew, "ExampleServer"], swiftSettings: settings),
        // A download that resumes.
        .executableTarget(name: "Resume", dependencies: [curlew, "ExampleServer"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
