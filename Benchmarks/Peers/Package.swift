// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// What Curlew is measured beside. A package of its own: SwiftNIO takes minutes to build. For Linux.
let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")]

let package = Package(
    name: "curlew-benchmarks-peers",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "curlew-benchmarks", path: ".."),
        .package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0"),
        // What its users import beside it.
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.100.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.30.0"),
    ],
    targets: [
        .executableTarget(
            name: "AsyncHTTPClientBench",
            dependencies: [
                .product(name: "BenchSupport", package: "curlew-benchmarks"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOFoundationCompat", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "URLSessionBench",
            dependencies: [.product(name: "BenchSupport", package: "curlew-benchmarks")],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
