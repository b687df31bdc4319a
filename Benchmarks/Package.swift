// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// A package of its own, so that nobody who depends on Curlew builds it. `scripts/bench` builds and runs it, with
// the C floor beside it. What Curlew is compared with is in Peers, a package again: CI does not build that. For Linux.
let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "curlew-benchmarks",
    platforms: [.macOS(.v15)],
    products: [.library(name: "BenchSupport", targets: ["BenchSupport"])],
    dependencies: [
        .package(name: "curlew", path: "..", traits: ["Observability"]),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
    ],
    targets: [
        .target(name: "BenchSupport", swiftSettings: settings),
        .executableTarget(
            name: "CurlewBench",
            dependencies: [
                "BenchSupport", .product(name: "Curlew", package: "curlew"), .product(name: "CurlewJSON", package: "curlew"),
                .product(name: "CurlewObservability", package: "curlew"), .product(name: "CurlewResilience", package: "curlew"),
                .product(name: "CurlewURLSession", package: "curlew"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: settings
        ),
        // What a hit of the cache costs: scripts/bench-cache.
        .executableTarget(
            name: "CacheBench",
            dependencies: [
                .product(name: "Curlew", package: "curlew"), .product(name: "CurlewCaching", package: "curlew"),
                .product(name: "CurlewTesting", package: "curlew"),
            ],
            path: "Cache", swiftSettings: settings
        ),
        // The policies of a fleet of clients, simulated: scripts/fleet.
        .executableTarget(
            name: "Fleet", dependencies: [.product(name: "CurlewResilience", package: "curlew")], path: "Fleet", swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
