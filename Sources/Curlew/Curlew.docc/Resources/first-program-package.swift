// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "app",
    dependencies: [.package(url: "…/curlew.git", from: "0.9.0")],
    targets: [
        .executableTarget(name: "App", dependencies: [.product(name: "Curlew", package: "curlew")]),
        .testTarget(
            name: "AppTests",
            dependencies: ["App", .product(name: "Curlew", package: "curlew"), .product(name: "CurlewTesting", package: "curlew")]),
    ]
)
