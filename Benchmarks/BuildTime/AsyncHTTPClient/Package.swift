// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// The same program with async-http-client.
let package = Package(
    name: "hello",
    platforms: [.macOS(.v13)],
    dependencies: [.package(url: "https://github.com/swift-server/async-http-client.git", exact: "1.37.0")],
    targets: [
        .executableTarget(name: "Hello", dependencies: [.product(name: "AsyncHTTPClient", package: "async-http-client")])
    ],
    swiftLanguageModes: [.v6]
)
