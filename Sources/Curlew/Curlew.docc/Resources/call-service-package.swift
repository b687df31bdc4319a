// swift-tools-version: 6.2
import PackageDescription

let library: [Target.Dependency] = ["Curlew", "CurlewResilience"].map { .product(name: $0, package: "curlew") }

let package = Package(
    name: "shop",
    dependencies: [.package(url: "…/curlew.git", from: "0.9.0")],
    targets: [
        .target(name: "Shop", dependencies: library),
        .testTarget(name: "ShopTests", dependencies: ["Shop", .product(name: "CurlewTesting", package: "curlew")] + library),
    ]
)
