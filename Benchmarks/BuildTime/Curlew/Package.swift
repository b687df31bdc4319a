// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// The least program that depends on Curlew: `scripts/bench --build-time` measures how long it builds and how large it is.
let package = Package(
    name: "hello",
    dependencies: [.package(name: "curlew", path: "../../..")],
    targets: [.executableTarget(name: "Hello", dependencies: [.product(name: "Curlew", package: "curlew")])],
    swiftLanguageModes: [.v6]
)
