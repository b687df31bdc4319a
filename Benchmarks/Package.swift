// swift-tools-version: 6.1
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// A package of its own, so that nobody who depends on Curlew builds it. `scripts/bench` builds and runs it, with
// the C floor beside it. For Linux.
let package = Package(
    name: "curlew-benchmarks",
    dependencies: [.package(name: "curlew", path: "..")],
    targets: [
        .executableTarget(
            name: "CurlewBench",
            dependencies: [.product(name: "Curlew", package: "curlew")],
            swiftSettings: [.enableUpcomingFeature("ExistentialAny")]
        )
    ],
    swiftLanguageModes: [.v6]
)
