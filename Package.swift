// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

// Whoever imports the umbrella, or more than one layer, depends on each by name: else the build does not see that a layer has changed.
let layers = ["CurlewCore", "CurlewCache", "CurlewCookies", "CurlewTransport", "CurlewEncoding", "CurlewURLLoading", "CurlewHTTP"]
let core: [Target.Dependency] = layers.map { .target(name: $0) }
let library: [Target.Dependency] = ["Curlew"] + core

let package = Package(
    name: "curlew",
    platforms: [.macOS(.v13)],
    products: [
        // Every public target stands in the product: a product of the umbrella alone does not rebuild its clients when a
        // layer below changes, and hides API breaks from `swift package diagnose-api-breaking-changes`.
        .library(name: "Curlew", targets: ["Curlew"] + layers),
        // What follows is for those who ask for it; nobody else builds it.
        .library(name: "CurlewAlamofire", targets: ["CurlewAlamofire"] + layers),
        .library(name: "CurlewRequests", targets: ["CurlewRequests", "CurlewCaching"] + layers),
        .library(name: "CurlewOperations", targets: ["CurlewOperations"] + layers),
        .library(name: "CurlewServices", targets: ["CurlewServices", "CurlewWebSocket"] + layers),
        .library(name: "CurlewWebSocket", targets: ["CurlewWebSocket"] + layers),
        .library(name: "CurlewURLSession", targets: ["CurlewURLSession", "CurlewWebSocket"] + layers),
        .library(name: "CurlewEvents", targets: ["CurlewEvents"] + layers),
        .library(name: "CurlewDownloads", targets: ["CurlewDownloads"] + layers),
        .library(name: "CurlewUploads", targets: ["CurlewUploads"] + layers),
        .library(name: "CurlewGraphQL", targets: ["CurlewGraphQL", "CurlewWebSocket"] + layers),
        .library(name: "CurlewCaching", targets: ["CurlewCaching", "CurlewCache", "CurlewHTTP"]),
        .library(name: "CurlewJSON", targets: ["CurlewJSON", "CurlewHTTP"]),
        .library(name: "CurlewSigning", targets: ["CurlewSigning", "CurlewCrypto"] + layers),
        .library(name: "CurlewAuth", targets: ["CurlewAuth", "CurlewSigning", "CurlewCrypto"] + layers),
        .library(name: "CurlewLifecycle", targets: ["CurlewLifecycle"] + layers),
        .library(name: "CurlewHTTPTypes", targets: ["CurlewHTTPTypes"] + layers),
        .library(name: "CurlewResilience", targets: ["CurlewResilience"] + layers),
        .library(name: "CurlewHAR", targets: ["CurlewHAR"] + layers),
        .library(name: "CurlewObservability", targets: ["CurlewObservability"] + layers),
        .library(name: "CurlewRedis", targets: ["CurlewRedis", "CurlewCrypto", "CurlewResilience"] + layers),
        .library(name: "CurlewTesting", targets: ["CurlewTesting", "CurlewLoopback", "CurlewURLSession", "CurlewWebSocket"] + layers),
    ],
    traits: [
        .trait(name: "Brotli", description: "Decodes bodies in brotli (br), with the system's libbrotlidec."),
        .trait(name: "Zstd", description: "Decodes bodies in zstd, with the system's libzstd."),
        .trait(name: "Logging", description: "CurlewServices logs to swift-log, in debug builds."),
        .trait(name: "OpenCombine", description: "CurlewServices has publishers of OpenCombine, where there is no Combine."),
        .trait(name: "Lifecycle", description: "CurlewLifecycle is a service of swift-service-lifecycle."),
        .trait(name: "HTTPTypes", description: "CurlewHTTPTypes sends requests of swift-http-types."),
        .trait(
            name: "Observability",
            description: "CurlewObservability traces, measures and logs with swift-distributed-tracing, swift-metrics and swift-log."),
        .trait(name: "Redis", description: "CurlewRedis shares limits, tokens and caches on a Redis server, with the system's libhiredis."),
    ],
    dependencies: [
        // Only fetched with their traits.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.6.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.3.0"),
    ],
    targets: [
        // The C side: the system's libcurl, and the one place that includes its headers.
        .systemLibrary(
            name: "CLibcurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev", "libssl-dev", "zlib1g-dev"]), .brew(["curl"])]
        ),
        .systemLibrary(
            name: "CBrotli", pkgConfig: "libbrotlidec", providers: [.apt(["libbrotli-dev"]), .brew(["brotli"])]),
        // Without pkg-config: Debian's file for hiredis has a flag that the package manager warns of.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"]), .brew(["hiredis"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
        .target(
            name: "CCurlew",
            dependencies: ["CLibcurl"],
            linkerSettings: [.linkedLibrary("z")]
        ),

        // The layers, lowest first; imports only go down.
        .target(name: "CurlewHTTP", path: "Sources/HTTP"),
        .target(name: "CurlewCache", dependencies: ["CurlewHTTP"], path: "Sources/Cache"),
        .target(name: "CurlewCookies", dependencies: ["CurlewHTTP", "CCurlew"], path: "Sources/Cookies"),
        .target(name: "CurlewJSON", dependencies: ["CurlewHTTP"], path: "Sources/JSON"),
        .target(name: "CurlewCrypto", dependencies: ["CurlewHTTP"], path: "Sources/Crypto"),
        .target(name: "CurlewURLLoading", path: "Sources/URLLoading"),
        .target(name: "CurlewEncoding", dependencies: ["CurlewHTTP"], path: "Sources/Encoding"),
        .target(
            name: "CurlewTransport",
            dependencies: [
                "CurlewHTTP", "CCurlew", .target(name: "CBrotli", condition: .when(traits: ["Brotli"])),
                .target(name: "CZstd", condition: .when(traits: ["Zstd"])),
            ],
            path: "Sources/Transport"),
        .target(
            name: "CurlewCore",
            dependencies: ["CurlewHTTP", "CurlewCache", "CurlewCookies", "CurlewEncoding", "CurlewTransport", "CurlewURLLoading"],
            path: "Sources/Core"),
        .target(name: "Curlew", dependencies: core),
        .target(name: "CurlewAlamofire", dependencies: core, path: "Sources/Alamofire"),
        .target(name: "CurlewCaching", dependencies: ["CurlewCache", "CurlewHTTP"], path: "Sources/Caching"),
        .target(name: "CurlewRequests", dependencies: core + ["CurlewCaching"], path: "Sources/Requests"),
        .target(name: "CurlewOperations", dependencies: core, path: "Sources/Operations"),
        .target(
            name: "CurlewServices",
            dependencies: core + [
                "CurlewWebSocket", .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"])),
                .product(name: "OpenCombine", package: "OpenCombine", condition: .when(traits: ["OpenCombine"])),
            ],
            path: "Sources/Services"),
        .target(name: "CurlewWebSocket", dependencies: core, path: "Sources/WebSocket"),
        .target(name: "CurlewURLSession", dependencies: core + ["CurlewWebSocket"], path: "Sources/URLSession"),
        .target(name: "CurlewDownloads", dependencies: core, path: "Sources/Downloads"),
        .target(name: "CurlewUploads", dependencies: core, path: "Sources/Uploads"),
        .target(name: "CurlewEvents", dependencies: core, path: "Sources/Events"),
        .target(name: "CurlewSigning", dependencies: core + ["CurlewCrypto"], path: "Sources/Signing"),
        .target(name: "CurlewGraphQL", dependencies: core + ["CurlewWebSocket"], path: "Sources/GraphQL"),
        .target(name: "CurlewAuth", dependencies: core + ["CurlewSigning", "CurlewCrypto"], path: "Sources/Auth"),
        .target(
            name: "CurlewLifecycle",
            dependencies: core + [
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["Lifecycle"]))
            ],
            path: "Sources/Lifecycle"),
        .target(
            name: "CurlewHTTPTypes",
            dependencies: core + [
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"]))
            ],
            path: "Sources/HTTPTypes"),
        .target(name: "CurlewHAR", dependencies: core, path: "Sources/HAR"),
        .target(name: "CurlewResilience", dependencies: core, path: "Sources/Resilience"),
        .target(
            name: "CurlewObservability",
            dependencies: core + [
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "CoreMetrics", package: "swift-metrics", condition: .when(traits: ["Observability"])),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Observability"])),
            ],
            path: "Sources/Observability"),
        .target(
            name: "CurlewRedis",
            dependencies: core + ["CurlewCrypto", "CurlewResilience", .target(name: "CHiredis", condition: .when(traits: ["Redis"]))],
            path: "Sources/Redis"),
        // For tests of programs: transports, a clock and a server. The server knows nothing of the layers, so that their own tests have it.
        .target(name: "CLoopback"),
        .target(name: "CurlewLoopback", dependencies: ["CLoopback"], path: "Sources/Loopback"),
        .target(
            name: "CurlewTesting", dependencies: core + ["CurlewLoopback", "CurlewURLSession", "CurlewWebSocket"], path: "Sources/Testing"),

        // Tests, one target a layer.
        .target(name: "CurlewTestSupport", dependencies: ["CurlewLoopback"], path: "Tests/Support"),
        // What needs a session; a target of its own, so that the tests of the lower layers are not built after it.
        .target(
            name: "CurlewSessionTestSupport", dependencies: core + ["CurlewTestSupport", "CurlewTesting"], path: "Tests/SessionSupport"),
        .testTarget(name: "SupportTests", dependencies: ["CurlewLoopback", "CurlewTestSupport"]),
        .testTarget(name: "HTTPTests", dependencies: ["CurlewHTTP", "CurlewTestSupport"]),
        .testTarget(name: "CacheTests", dependencies: ["CurlewCache", "CurlewHTTP", "CurlewTestSupport"]),
        .testTarget(name: "CookiesTests", dependencies: ["CurlewCookies", "CurlewHTTP", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(name: "CachingTests", dependencies: ["CurlewCaching", "CurlewHTTP", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(name: "JSONTests", dependencies: ["CurlewJSON", "CurlewHTTP", "CurlewTestSupport"]),
        .testTarget(
            name: "SigningTests", dependencies: core + ["CurlewCrypto", "CurlewSigning", "CurlewTestSupport", "CurlewTesting"],
            exclude: ["Vectors", "moto-server.py"]),
        .testTarget(name: "EncodingTests", dependencies: ["CurlewEncoding", "CurlewHTTP"]),
        .testTarget(name: "TransportTests", dependencies: ["CurlewTransport", "CurlewHTTP", "CurlewTestSupport"]),
        .testTarget(name: "CoreTests", dependencies: core + ["CurlewCaching", "CurlewTesting", "CurlewTestSupport"]),
        .testTarget(
            name: "TestingTests",
            dependencies: library + [
                "CurlewTesting", "CurlewEvents", "CurlewLoopback", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewWebSocket",
            ]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: library + [
                "CurlewJSON", "CurlewURLSession", "CurlewWebSocket", "CurlewSessionTestSupport", "CurlewTestSupport", "curlew-probe",
            ]),
        .testTarget(
            name: "WebSocketTests",
            dependencies: library + ["CurlewWebSocket", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting"]),
        .testTarget(
            name: "URLSessionTests",
            dependencies: library + [
                "CurlewURLSession", "CurlewWebSocket", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting", "CurlewHAR",
            ]),
        .testTarget(
            name: "DownloadsTests",
            dependencies: library + ["CurlewDownloads", "CurlewSessionTestSupport", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(
            name: "UploadsTests",
            dependencies: library + ["CurlewUploads", "CurlewSessionTestSupport", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(
            name: "EventsTests", dependencies: library + ["CurlewEvents", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting"]),
        .testTarget(
            name: "GraphQLTests",
            dependencies: library + [
                "CurlewGraphQL", "CurlewWebSocket", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting",
            ],
            exclude: ["strawberry-server.py"]),
        .testTarget(
            name: "AuthTests",
            dependencies: core + [
                "CurlewAuth", "CurlewSigning", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting", "curlew-auth-probe",
            ],
            exclude: ["authlib-server.py"]),
        // What tests run in a process of its own; in no product.
        .executableTarget(
            name: "curlew-probe",
            dependencies: library + [
                "CurlewCaching", "CurlewDownloads", "CurlewOperations", "CurlewRequests", "CurlewUploads", "CurlewURLSession",
                "CurlewWebSocket", "CurlewTestSupport",
            ],
            path: "Tests/Probe"),
        // What the tests of the lifecycle terminate; in no product.
        .executableTarget(
            name: "curlew-worker-probe",
            dependencies: core + [
                "CurlewLifecycle", "CurlewTestSupport",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Lifecycle"])),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["Lifecycle"])),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: .when(traits: ["Lifecycle"])),
            ],
            path: "Tests/WorkerProbe"),
        // A process that shares a file of tokens; in no product.
        .executableTarget(
            name: "curlew-auth-probe", dependencies: core + ["CurlewAuth", "CurlewTestSupport"], path: "Tests/AuthProbe"),
        // A process of a fleet, for the tests of what is shared; in no product.
        .executableTarget(
            name: "curlew-redis-probe", dependencies: core + ["CurlewRedis", "CurlewResilience", "CurlewTestSupport"],
            path: "Tests/RedisProbe"),
        // The example that delivers webhooks, for the tests that kill it; in no product.
        .executableTarget(
            name: "curlew-webhooks-probe", dependencies: library + ["CurlewResilience", "CurlewSigning", "CurlewTesting"],
            path: "Examples/Sources/Webhooks", exclude: ["README.md"]),
        // Does what a test kit from outside asks for; in no product.
        .executableTarget(name: "curlew-kit", dependencies: library + ["CurlewDownloads", "CurlewWebSocket"], path: "Tests/Driver"),
        // What scripts/fuzz fuzzes, and the inputs that it has kept.
        .testTarget(
            name: "FuzzTests",
            dependencies: core + [
                "CCurlew", "CurlewCaching", "CurlewDownloads", "CurlewEvents", "CurlewJSON", "CurlewOperations", "CurlewServices",
                "CurlewSigning", "CurlewTestSupport", "CurlewWebSocket",
            ],
            exclude: ["Corpus", "Fuzzer"]),
        .testTarget(
            name: "DocumentationTests",
            dependencies: library + [
                "CurlewCaching", "CurlewRequests", "CurlewOperations", "CurlewServices", "CurlewWebSocket", "CurlewEvents", "CurlewJSON",
                "CurlewAuth", "CurlewDownloads", "CurlewGraphQL", "CurlewHAR", "CurlewResilience", "CurlewSigning", "CurlewTestSupport",
                "CurlewTesting", "CurlewUploads", "CurlewURLSession",
            ]),
        // In Swift 5 mode, as the programs are for which the module is.
        .testTarget(
            name: "AlamofireTests", dependencies: ["CurlewAlamofire", "CurlewTestSupport", "AlamofireSample"],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "AlamofireSample", dependencies: ["CurlewAlamofire"], path: "Tests/AlamofireSample",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "RequestsTests", dependencies: core + ["CurlewRequests", "CurlewCaching", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(
            name: "OperationsTests",
            dependencies: library + ["CurlewOperations", "CurlewSessionTestSupport", "CurlewTestSupport", "curlew-probe"]),
        .testTarget(
            name: "ServicesTests",
            dependencies: core + [
                "CurlewServices", "CurlewWebSocket", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Logging"])),
                .product(name: "OpenCombine", package: "OpenCombine", condition: .when(traits: ["OpenCombine"])),
            ]),
        .testTarget(
            name: "LifecycleTests",
            dependencies: core + [
                "CurlewLifecycle", "CurlewSessionTestSupport", "CurlewTestSupport", "curlew-worker-probe",
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Lifecycle"])),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: .when(traits: ["Lifecycle"])),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle", condition: .when(traits: ["Lifecycle"])),
            ]),
        .testTarget(
            name: "HTTPTypesTests",
            dependencies: core + [
                "CurlewHTTPTypes", "CurlewSessionTestSupport", "CurlewTestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HTTPTypes"])),
            ]),
        .testTarget(
            name: "RedisTests",
            dependencies: library + [
                "CurlewAuth", "CurlewRedis", "CurlewResilience", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting",
                "curlew-redis-probe",
            ]),
        .testTarget(
            name: "ResilienceTests",
            dependencies: library + ["CurlewResilience", "CurlewSessionTestSupport", "CurlewTestSupport", "CurlewTesting"]),
        .testTarget(
            name: "WebhooksTests",
            dependencies: library + ["CurlewResilience", "CurlewSigning", "CurlewTestSupport", "CurlewTesting", "curlew-webhooks-probe"]),
        .testTarget(name: "HARTests", dependencies: library + ["CurlewHAR", "CurlewSessionTestSupport", "CurlewTestSupport"]),
        .testTarget(
            name: "ObservabilityTests",
            dependencies: library + [
                "CurlewObservability", "CurlewEvents", "CurlewHAR", "CurlewResilience", "CurlewSessionTestSupport", "CurlewTestSupport",
                "CurlewTesting", "CurlewWebSocket",
                .product(name: "InMemoryLogging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "Logging", package: "swift-log", condition: .when(traits: ["Observability"])),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: .when(traits: ["Observability"])),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing", condition: .when(traits: ["Observability"])),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: .when(traits: ["Observability"])),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// The program, a package of its own (Tool/Package.swift), as a part of this one that sees no more of it than any other package: .ci/run
// compiles the library once for the tests of both.
if Context.environment["CURLEW_WITH_TOOL"] != nil {
    let used: [Target.Dependency] =
        library + [
            "CurlewCaching", "CurlewDownloads", "CurlewEvents", "CurlewHAR", "CurlewLoopback", "CurlewSigning", "CurlewTesting",
            "CurlewWebSocket",
        ]
    let apart: [SwiftSetting] = [.unsafeFlags(["-package-name", "curlew_tool"])]
    package.dependencies.append(.package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"))
    package.products.append(.executable(name: "curlew", targets: ["CurlewTool"]))
    package.targets += [
        .executableTarget(
            name: "CurlewTool", dependencies: used + [.product(name: "ArgumentParser", package: "swift-argument-parser")],
            path: "Tool/Sources/CurlewTool", packageAccess: false, swiftSettings: apart),
        .testTarget(
            name: "CurlewToolTests", dependencies: used + ["CurlewTool"], path: "Tool/Tests/CurlewToolTests", packageAccess: false,
            swiftSettings: apart),
    ]
}

for target in package.targets where ![.system, .plugin].contains(target.type) {
    var settings = target.swiftSettings ?? []
    // Programs for Alamofire 4 write `Error` for `any Error`.
    if !target.name.hasPrefix("Alamofire") { settings.append(.enableUpcomingFeature("ExistentialAny")) }
    target.swiftSettings = settings
}

// Only these suites, separated by commas, and what they need: .ci/run names those that a sanitizer is for. With none, what products need.
if let suites = Context.environment["CURLEW_TEST_TARGETS"] {
    let targets = Dictionary(uniqueKeysWithValues: package.targets.map { ($0.name, $0) })
    var open = suites.split(separator: ",").map(String.init)
    if open.isEmpty {
        open = package.products.flatMap { ($0 as? Product.Library)?.targets ?? [] }
    } else {
        package.products = []
    }
    var needed: Set<String> = []
    while let name = open.popLast() {
        guard needed.insert(name).inserted else { continue }
        open += (targets[name]?.dependencies ?? []).compactMap {
            switch $0 {
            case .targetItem(let name, _), .byNameItem(let name, _): name
            default: nil
            }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
}
