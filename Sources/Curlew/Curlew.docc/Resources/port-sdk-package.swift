// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "weather-sdk",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [.library(name: "WeatherSDK", targets: ["WeatherSDK"])],
    dependencies: [.package(url: "…/curlew.git", from: "0.10.0")],
    targets: [
        .target(
            name: "WeatherSDK",
            dependencies: [
                .product(name: "CurlewURLSession", package: "curlew", condition: .when(platforms: [.linux]))
            ]),
        .testTarget(
            name: "WeatherSDKTests",
            dependencies: [
                "WeatherSDK", .product(name: "CurlewTesting", package: "curlew", condition: .when(platforms: [.linux])),
            ]),
    ]
)
