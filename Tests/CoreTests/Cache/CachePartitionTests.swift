// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewCaching
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import Foundation
import Testing

@testable import CurlewCore
@testable import CurlewTransport

/// Which requests share what is stored, and what is in flight.
@Suite(.timeLimit(.minutes(1))) struct CachePartitionTests {
    private static let url = "https://mock/a"

    /// A way in which requests differ in who answers them, or as whom they are sent.
    struct Difference: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout TransferOptions) -> Void

        init(_ name: String, _ change: @escaping @Sendable (inout TransferOptions) -> Void) {
            testDescription = name
            self.change = change
        }
    }

    private static func certificate(_ name: String) -> ClientCertificate { .pem(Data(name.utf8), key: Data("key".utf8)) }

    static let differences = [
        Difference("none") { _ in },
        Difference("public addresses") { $0.addresses = .publicOnly },
        Difference("public addresses with an exception") {
            $0.addresses = .publicOnly(except: [AddressRange("10.0.0.0/8")].compactMap { $0 })
        },
        Difference("connectTo") { $0.connectTo = ["mock": "other"] },
        Difference("resolve") { $0.resolve = ["mock": ["127.0.0.1"]] },
        Difference("a resolver") { $0.resolver = HostResolver { _, _ in [] } },
        Difference("DNS over HTTPS") { $0.dohURL = "https://names.test/" },
        Difference("IPv4") { $0.ipVersion = .v4 },
        Difference("IPv6") { $0.ipVersion = .v6 },
        Difference("an interface") { $0.interface = "192.0.2.7" },
        Difference("no verification") { $0.tls.verifiesServer = false },
        Difference("no verification of the name") { $0.tls.verifiesHostName = false },
        Difference("a pin") { $0.tls.publicKeyHashes = [Data([1])] },
        Difference("another pin") { $0.tls.publicKeyHashes = [Data([2])] },
        Difference("authorities") { $0.tls.certificateAuthorities = Data([1]) },
        Difference("a file of authorities") { $0.tls.certificateAuthorityFile = #filePath },
        Difference("no authorities of the environment") { $0.tls.usesEnvironment = false },
        Difference("a client") { $0.tls.clientCertificate = certificate("a") },
        Difference("another client") { $0.tls.clientCertificate = certificate("b") },
        Difference("no verification, by a proxy") {
            $0.tls.verifiesServer = false
            $0.proxy = .url("http://proxy.test:1")
        },
        Difference("an evaluator") {
            $0.tls.trust = TrustRequirement(
                .evaluator(TrustEvaluator(scope: Inbox<Int>()) { _, _ in }), policy: "p", host: "mock", port: 443)
        },
    ]

    private func counting(_ headers: HTTPHeaders = ["Cache-Control": "max-age=60"]) -> MockTransport {
        let count = Lock(0)
        return MockTransport { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .response(200, headers, "\(number)")
        }
    }

    private func manager(_ cache: ResponseCache, _ mock: MockTransport, _ difference: Difference = differences[0]) -> SessionManager {
        SessionManager(mock: mock) {
            $0.cache = cache
            difference.change(&$0.options)
        }
    }

    private func load(_ manager: SessionManager, _ headers: HTTPHeaders = [:], method: HTTPMethod = .get) async -> String? {
        await manager.request(Self.url, method: method, headers: headers).serializingString().response.value
    }

    @Test func `A response is served to sessions that are equal in trust, routing and addresses only`() async {
        let cache = ResponseCache.memory()
        let mock = counting()
        // The mock ends with the first manager that is released.
        var managers: [SessionManager] = []
        for (index, difference) in Self.differences.enumerated() {
            let manager = manager(cache, mock, difference)
            managers.append(manager)
            #expect(await load(manager) == "\(index + 1)", "\(difference.testDescription)")
            #expect(await load(manager) == "\(index + 1)", "\(difference.testDescription)")
        }
        // Other sessions with the same values share, but for closures.
        for (index, difference) in Self.differences.enumerated() where !["a resolver", "an evaluator"].contains(difference.testDescription)
        {
            let manager = manager(cache, mock, difference)
            managers.append(manager)
            #expect(await load(manager) == "\(index + 1)", "\(difference.testDescription)")
        }
        withExtendedLifetime(managers) {}
    }

    @Test(arguments: [
        ("Host", "tenant-a", "tenant-b"), ("X-Api-Key", "A", "B"), ("Cookie", "id=1", "id=2"), ("X-Partition-Mark", "A", "B"),
        ("X-Api-Key", "A", "a"),
    ])
    func `A response is served to requests with the same host field and secrets only`(name: String, one: String, other: String) async {
        Redaction(headers: ["x-partition-mark"]).register()
        let manager = manager(.memory(), counting())
        #expect(await load(manager, [name: one]) == "1")
        #expect(await load(manager, [name: other]) == "2")
        #expect(await load(manager) == "3")
        #expect(await load(manager, [name: one]) == "1")
        #expect(await load(manager, [name: other]) == "2")
        #expect(await load(manager, ["X-Other": "A"]) == "3")
    }

    @Test(arguments: ["url", "tag", "closure", "all", "unsafe"]) func `A URL is removed in all partitions`(way: String) async throws {
        let cache = ResponseCache(storage: MemoryCacheStorage(), tagHeader: "Cache-Tag")
        let mock = counting(["Cache-Control": "max-age=60", "Cache-Tag": "red"])
        let managers = Self.differences.map { manager(cache, mock, $0) }
        for manager in managers { _ = await load(manager) }
        #expect(try cache.entries().count == managers.count)
        switch way {
        case "url": try cache.remove(Self.url)
        case "tag": #expect(try cache.remove(tag: "red") == 1)
        case "closure": #expect(try cache.remove { $0.url == Self.url } == 1)
        case "all": try cache.removeAll()
        default: _ = await load(managers[1], method: .post)
        }
        #expect(try cache.entries().isEmpty && cache.storage.size == 0)
        let before = mock.started.count
        for manager in managers { _ = await load(manager) }
        #expect(mock.started.count == before + managers.count)
    }

    @Test func `What a mock or a cassette makes up answers no requests of sessions on the network`() async throws {
        let cache = ResponseCache.memory()
        let network = manager(cache, counting())
        let mocks = (0..<2).map { CurlewTesting.MockTransport(.text("made up \($0)").header("Cache-Control", "max-age=60")) }
        mocks[1].cachePartition = nil
        let managers = mocks.map { mock in SessionManager(mock: mock) { $0.cache = cache } }
        #expect(await load(managers[0]) == "made up 0")
        #expect(await load(network) == "1")
        #expect(await load(managers[0]) == "made up 0")
        #expect(await load(managers[1]) == "1")
        #expect(mocks.map(\.requests.count) == [1, 0])
        let options = RequestOptions(addresses: .publicOnly)
        #expect(await managers[0].request(Self.url, options: options).serializingString().response.value == "made up 0")
        #expect(await network.request(Self.url, options: options).serializingString().response.value == "2")

        let directory = try TemporaryDirectory()
        let cassette = try Cassette(directory: directory.url)
        #expect(try ReplayTransport(cassette).cachePartition == "replay")
        #expect(RecordingTransport(cassette, base: mocks[0]).cachePartition == "mock")
    }

    @Test func `Cookies of a shared load are its sender's, and those of a validation in the background are dropped`() async throws {
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let mock = MockTransport()
        let stores = [CookieStore(), CookieStore()]
        let managers = stores.map { store in
            SessionManager(mock: mock) {
                $0.cache = cache
                $0.cookies = store
            }
        }
        let first = Task { await load(managers[0]) }
        _ = await mock.started.first(1)
        let second = Task { await load(managers[1]) }
        #expect(await eventually { cache.coalescer?.waitingCount == 1 })
        func fields(_ cookie: String) -> HTTPHeaders {
            ["Cache-Control": "max-age=0, stale-while-revalidate=60", "ETag": "\"1\"", "Set-Cookie": cookie]
        }
        await mock.started[0].respond(200, fields("a=1"), "x")
        #expect(await first.value == "x")
        #expect(await second.value == "x")
        let background = await mock.started[1]
        background.respond(304, fields("b=2"))
        #expect(await eventually { background.isOver })
        for manager in managers { manager.settle() }
        #expect(try stores.map { try $0.cookies().map(\.name) } == [["a"], []])
    }

    @Test func `Many keys do not push out the response of plain requests`() async throws {
        let cache = ResponseCache.memory()
        let manager = manager(cache, counting())
        #expect(await load(manager) == "1")
        for key in 0..<(VariantStore.partitionCapacity + 10) { _ = await load(manager, ["X-Api-Key": "\(key)"]) }
        #expect(await load(manager) == "1")
        #expect(await load(manager, ["X-Api-Key": "100"]) == "102")
        #expect(try cache.entries().count == VariantStore.partitionCapacity + 1)
    }

    @Test func `What an earlier version has stored is not read`() async throws {
        let storage = MemoryCacheStorage()
        let manager = manager(ResponseCache(storage: storage), counting())
        #expect(await load(manager) == "1")
        let key = CacheKey("http", Self.url)
        let entry = try #require(storage.entry(for: key))
        #expect(entry.metadata.first == 2)
        try storage.store(CacheEntry(metadata: Data([1]) + entry.metadata.dropFirst(), body: entry.body), for: key)
        #expect(await load(manager) == "2")
        #expect(await load(manager) == "2")
    }

    @Test func `A request with a guard does not wait for one in flight without`() async {
        let cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let mock = MockTransport()
        let managers = Self.differences.prefix(2).map { manager(cache, mock, $0) }
        let plain = Task { await load(managers[0]) }
        _ = await mock.started.first(1)
        let guarded = Task { await load(managers[1]) }
        let exchanges = await mock.started.first(2)
        exchanges[0].respond(200, ["Cache-Control": "max-age=60"], "internal")
        exchanges[1].respond(200, ["Cache-Control": "max-age=60"], "public")
        #expect(await plain.value == "internal")
        #expect(await guarded.value == "public")
    }

    @Test func `Foundation's cache has one response for each URL, for requests of its partition`() async {
        let mock = counting()
        func manager(_ cache: URLCache, _ difference: Difference) -> SessionManager {
            SessionManager(mock: mock) {
                $0.urlCache = cache
                difference.change(&$0.options)
            }
        }
        let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let managers = Self.differences.prefix(2).map { manager(cache, $0) }
        #expect(await load(managers[0]) == "1")
        #expect(await load(managers[0]) == "1")
        #expect(await load(managers[1]) == "2")
        #expect(await load(managers[1]) == "2")
        #expect(await load(managers[0]) == "3")
    }

    @Test(arguments: ["/secret", "/moved"], [false, true])
    func `A request with a guard is not served what one without has fetched`(path: String, isOnDisk: Bool) async throws {
        let server = try LoopbackServer { request, _ in
            var response = request.path == "/moved" ? ServerResponse.status(302) : .ok("internal")
            if request.path == "/moved" { response.headers.append(ServerField("Location", "/secret")) }
            response.headers.append(ServerField("Cache-Control", "max-age=3600"))
            return response
        }
        defer { server.stop() }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-partition-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let memory = ResponseCache.memory()
        // On disk each session has its own storage, as in another process.
        func manager(_ change: (inout TransferOptions) -> Void = { _ in }) -> SessionManager {
            var configuration = SessionConfiguration()
            configuration.cache = isOnDisk ? .disk(directory: directory) : memory
            configuration.options.proxy = .none
            change(&configuration.options)
            return SessionManager(configuration: configuration)
        }
        let url = server.url(path)
        #expect(await manager().request(url).serializingString().response.value == "internal")
        let count = server.requestCount
        let refused = await manager { $0.addresses = .publicOnly }.request(url).serializingString().response
        if case .transferFailed(let failure)? = refused.error as? CurlewError {
            #expect(failure.kind == .addressNotAllowed)
        } else {
            Issue.record("served: \(refused)")
        }
        #expect(await manager().request(url).serializingString().response.value == "internal")
        #expect(server.requestCount == count)
    }

    @Test func `The options of a request count`() async {
        let cache = ResponseCache.memory()
        let manager = manager(cache, counting())
        #expect(await load(manager) == "1")
        let options = RequestOptions(addresses: .publicOnly)
        #expect(await manager.request(Self.url, options: options).serializingString().response.value == "2")
        #expect(await load(manager) == "1")
    }

    // MARK: The value

    private func partition(_ difference: Difference, url: String = CachePartitionTests.url, _ headers: HTTPHeaders = [:]) -> String {
        var options = TransferOptions()
        difference.change(&options)
        return TransferRequest(url: url, headers: headers, options: options).partition
    }

    @Test func `A partition is the same in each process, and that of plain requests is empty`() {
        let plain = Self.differences[0]
        #expect(partition(plain, ["Accept": "a", "User-Agent": "b", "Authorization": "Bearer a", "X-Other": "c"]).isEmpty)
        let expected = SHA256.digest(of: Data("9:0:addresses".utf8)).hexDigits
        #expect(partition(Self.differences[1]) == expected)
        #expect(!partition(plain, ["X-Api-Key": "secret"]).contains("secret"))
    }

    @Test func `A file counts by its contents, and one that can't be read is equal to no other`() throws {
        let directory = try TemporaryDirectory()
        func partition(_ files: [String], _ change: @escaping @Sendable (inout TLSOptions, String) -> Void) throws -> [String] {
            try files.enumerated().map { index, contents in
                // The second one is at the path of the first.
                let file = try directory.write(Data(contents.utf8), to: "\(index / 2)").path
                return self.partition(Difference("file") { change(&$0.tls, file) })
            }
        }
        let changes: [@Sendable (inout TLSOptions, String) -> Void] = [
            { $0.certificateAuthorityFile = $1 }, { $0.clientCertificate = .pem(file: $1, keyFile: #filePath) },
            { $0.clientCertificate = .pem(file: #filePath, keyFile: $1) },
        ]
        for change in changes {
            let partitions = try partition(["a", "b", "a"], change)
            #expect(partitions[0] == partitions[2])
            #expect(partitions[0] != partitions[1])
        }
        let absent = Difference("absent") { $0.tls.certificateAuthorityFile = directory.file("none").path }
        #expect(self.partition(absent) != self.partition(absent))
    }

    @Test func `A file of authorities that is replaced during a session makes another partition`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("a".utf8), to: "root.pem").path
        let cache = ResponseCache.memory()
        let mock = counting()
        func manager() -> SessionManager {
            SessionManager(mock: mock) {
                $0.cache = cache
                $0.tls.certificateAuthorityFile = file
            }
        }
        // The mock ends with the first manager that is released.
        let (first, second) = (manager(), manager())
        #expect(await load(first) == "1")
        #expect(await load(first) == "1")
        #expect(await load(second) == "1")
        _ = try directory.write(Data("bc".utf8), to: "root.pem")
        #expect(await load(first) == "2")
        #expect(await load(second) == "2")
        _ = try directory.write(Data("a".utf8), to: "root.pem")
        #expect(await load(first) == "1")
    }

    @Test func `A client certificate for no origin is not one for the request's own`() {
        let certificates = [nil, [], ["https://mock"]].map { (origins: [String]?) in
            Difference("client") {
                $0.tls.clientCertificate = Self.certificate("a")
                $0.tls.clientCertificate?.origins = origins
            }
        }
        #expect(Set(certificates.map { partition($0) }).count == 3)
    }

    @Test func `Sessions with one store of cookies share, others don't`() async throws {
        let cache = ResponseCache.memory()
        let mock = counting()
        let (one, other) = (CookieStore(), CookieStore())
        let managers = [one, one, other].map { store in
            SessionManager(mock: mock) {
                $0.cache = cache
                $0.cookies = store
            }
        }
        for store in [one, other] { try store.set(Cookie(name: "a", value: "1", domain: "mock")) }
        var values: [String?] = []
        for manager in managers { values.append(await load(manager)) }
        #expect(values == ["1", "1", "2"])
    }

    @Test func `Of the session's cookies those count that are sent, by their names`() async throws {
        let store = CookieStore()
        let manager = SessionManager(mock: counting()) {
            $0.cache = .memory()
            $0.cookies = store
        }
        try store.set(Cookie(name: "lang", value: "en", domain: "mock"))
        #expect(await load(manager) == "1")
        try store.set(Cookie(name: "sid", value: "alice", domain: "mock"))
        #expect(await load(manager) == "2")
        try store.set(Cookie(name: "sid", value: "rotated", domain: "mock"))
        #expect(await load(manager) == "2")
    }

    @Test func `Of contradicting spellings of a host the same one counts each time`() {
        let both = Difference("both") { $0.connectTo = ["MOCK": "a.test", "Mock": "b.test"] }
        #expect(partition(both) == partition(Difference("first") { $0.connectTo = ["mock": "a.test"] }))
    }

    @Test func `A proxy counts where it may answer itself`() {
        let proxied = Difference("proxy") { $0.proxy = .url("http://proxy.test:1") }
        let other = Difference("proxy") { $0.proxy = .url("http://proxy.test:2") }
        #expect(partition(proxied).isEmpty)
        #expect(!partition(proxied, url: "http://mock/").isEmpty)
        #expect(partition(proxied, url: "http://mock/") != partition(other, url: "http://mock/"))
        // No proxy is asked for HTTP/3 only, nor over a Unix socket.
        func direct(_ proxy: ProxyPolicy, _ change: @escaping @Sendable (inout TransferOptions) -> Void) -> String {
            partition(
                Difference("direct") {
                    $0.tls.verifiesServer = false
                    $0.proxy = proxy
                    change(&$0)
                })
        }
        for change in [{ $0.httpVersion = .http3Only }, { $0.unixSocketPath = "/s" }] as [@Sendable (inout TransferOptions) -> Void] {
            #expect(direct(.url("http://proxy.test:1"), change) == direct(.none, change))
        }
    }

    /// Each property is part of a partition, or has a reason not to be: a new one has to be put here.
    @Test func `All properties of the options are known`() {
        func names(_ value: Any) -> Set<String> { Set(Mirror(reflecting: value).children.compactMap(\.label)) }
        // Limits of time and size end a transfer, and do not change who answers; nor does the version of HTTP.
        let limits: Set = [
            "connectTimeout", "firstByteTimeout", "idleTimeout", "totalTimeout", "queueTimeout", "maximumExpansion", "maximumHeadSize",
            "maximumHeaderSize", "maximumHeaderCount", "maximumInterimResponses", "httpVersion",
            // Responses that are left coded are not cached.
            "decodesContent",
        ]
        #expect(names(TransferOptions()) == limits.union(["tls", "proxy", "interface", "addresses", "reachBox"]))
        // A lower maximum is no weaker trust than the minimum allows.
        #expect(
            names(TLSOptions()) == [
                "minimumVersion", "maximumVersion", "verifiesCertificateChain", "verifiesHostName", "requiresCloseNotify",
                "requiresStapledResponse", "revocationListFile", "publicKeyHashes", "certificateAuthorities", "certificateAuthorityFile",
                "additionalAuthorities", "pinnedAuthorities", "clientCertificate", "trust", "usesEnvironment",
                // Counted in place of the file.
                "authorityContents",
            ])
        // Ports and delays are the client's, and alternative services are verified as the origin.
        #expect(
            names(ReachOptions()) == [
                "routing", "ipVersion", "connectionAttemptDelay", "localPorts", "socket", "dohURL", "dohVerifiesServer",
                "alternativeServices",
            ])
        #expect(names(RoutingOptions()) == ["unixSocket", "resolve", "connectTo", "resolver"])
        #expect(names(AddressPolicy.any) == ["limitsAddresses", "exceptions", "ports", "allowsProxies"])
    }
}
