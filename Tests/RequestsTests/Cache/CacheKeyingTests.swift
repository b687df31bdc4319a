// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewURLLoading
import Testing

@testable import CurlewRequests

/// Cache keys and locations.
@Suite(.timeLimit(.minutes(1))) struct CacheKeyingTests {
    let stage: CacheStage

    init() throws {
        stage = try CacheStage()
    }

    @Test func `an object without contents that can be compared is equal to nothing`() {
        final class User: Sendable {
            let name: String
            init(_ name: String) { self.name = name }
        }
        struct Holder {
            let user: User
        }
        struct Plain {
            let name: String
        }
        enum Kind {
            case one, two, other(Int)
        }
        let user = User("a")
        for value in [user, Holder(user: user), [user], ["user": user]] as [Any] {
            #expect(CanonicalText.of(value) != CanonicalText.of(value))
        }
        let different: [Any] = [Plain(name: "a"), Plain(name: "b"), Kind.one, Kind.two, Kind.other(1), Kind.other(2)]
        for (index, value) in different.enumerated() {
            #expect(different.map { CanonicalText.of($0) }.firstIndex(of: CanonicalText.of(value)) == index)
        }
    }

    @Test func `different requests have different keys`() throws {
        var requests: [CachedSample] = []
        func add(_ path: String = "a", _ change: (CachedSample) -> Void = { _ in }) {
            let request = CachedSample(stage, path)
            change(request)
            requests.append(request)
        }
        add()
        add("b")
        add { $0.method = .post }
        add { $0.base = "http://other.test/" }
        let arguments: [Any] = [
            ["a": 1], ["a": "1"], ["a": true], ["a": [1]], ["a": NSNull()], ["a": 1, "b": 2], ["b": 1, "a": 2], [1, 2], [2, 1], "a",
            [String: Int](), [Int](), ["a": 1.5], ["a1": ""], ["a": ["b": 1]], ["a": Data([1])], ["a": Date(timeIntervalSince1970: 1)],
            "a Argument:b",
        ]
        for argument in arguments { add { $0.argument = argument } }
        add("a Argument:b")
        for url in ["http://custom.test/1", "http://custom.test/2"] { add { $0.custom = URL(string: url).map { URLRequest(url: $0) } } }
        #expect(Set(requests.map(\.cacheKey)).count == requests.count)
    }

    @Test func `agents whose sessions differ in who answers, or as whom they ask, share no responses`() {
        var configurations = (0..<7).map { _ in RequestsConfiguration.defaultSessionConfiguration }
        configurations[1].options.addresses = .publicOnly
        configurations[2].headers.update(name: "Authorization", value: "Bearer a")
        configurations[3].headers.update(name: "X-Api-Key", value: "a")
        configurations[4].options.tls.clientCertificate = .pem(Data("a".utf8), key: Data("b".utf8))
        configurations[5].options.connectTo = ["host.test": "other.test"]
        configurations[6].protocolClasses = [URLProtocol.self]
        func keys() -> [CacheKey?] {
            configurations.map { session in
                let configuration = RequestsConfiguration()
                configuration.baseUrl = "https://host.test/"
                configuration.sessionConfiguration = session
                let request = CachedSample(stage)
                request.agent = RequestAgent(configuration: configuration)
                return request.cacheKey
            }
        }
        #expect(Set(keys()).count == configurations.count)
        // The same in another process.
        #expect(keys() == keys())
    }

    enum Unknown: CaseIterable {
        case closure, closureForConnections, credentialStorage, stream
    }

    @Test(arguments: Unknown.allCases)
    func `nothing is cached where a challenge's answer or a stream decides on the response`(_ unknown: Unknown) async throws {
        var session = RequestsConfiguration.defaultSessionConfiguration
        session.proxy = .none
        if unknown == .credentialStorage { session.credentialStorage = URLCredentialStorage() }
        let configuration = RequestsConfiguration()
        configuration.baseUrl = stage.stage.server.url("/")
        configuration.sessionConfiguration = session
        let agent = RequestAgent(configuration: configuration)
        let delegate = agent.currentManager().delegate
        if unknown == .closure { delegate.taskDidReceiveChallenge = { _, _, _, done in done(.performDefaultHandling, nil) } }
        if unknown == .closureForConnections { delegate.sessionDidReceiveChallenge = { _, _, done in done(.performDefaultHandling, nil) } }
        func request(_ sensitive: Any? = nil) -> CachedSample {
            let request = CachedSample(stage)
            request.agent = agent
            request.sensitive = sensitive
            if unknown == .stream {
                request.custom = URL(string: stage.stage.server.url("/count")).map { URLRequest(url: $0) }
                request.custom?.httpMethod = "POST"
                request.custom?.httpBodyStream = InputStream(data: Data("a".utf8))
            }
            return request
        }
        for _ in 1...2 {
            let sent = request()
            try await sent.response()
            #expect(sent.count != nil && !sent.isDataFromCache && !sent.isResponseCached)
        }
        guard unknown != .stream else { return }
        try await request("alice").response()
        #expect(request("alice").isResponseCached && !request("bob").isResponseCached)
    }

    @Test func `a request's own options count`() {
        let (plain, guarded) = (CachedSample(stage), CachedSample(stage))
        guarded.requestOptions = RequestOptions(addresses: .publicOnly)
        #expect(plain.cacheKey != guarded.cacheKey)
        guarded.requestOptions = RequestOptions(deadline: .seconds(60))
        #expect(plain.cacheKey != nil && plain.cacheKey == guarded.cacheKey)
    }

    @Test func `a start reads the options once, for the key and for what is sent`() async throws {
        final class Counted: CachedRequest, @unchecked Sendable {  // immutable
            let stage: CacheStage
            let reads = Lock(0)

            init(_ stage: CacheStage) {
                self.stage = stage
                super.init()
                agent = stage.stage.agent
            }

            override func requestUrl() -> String { "count" }
            override func cacheTimeInSeconds() -> Int { 60 }
            override func cacheStorage() -> any CacheStorage { stage.storage }
            override func writeCacheAsynchronously() -> Bool { false }
            // What the next read would give leads to no server.
            override var requestOptions: RequestOptions? {
                get {
                    let count = reads.withLock { reads in
                        reads += 1
                        return reads
                    }
                    return count == 1 ? nil : RequestOptions(addresses: .publicOnly)
                }
                set {}
            }
        }
        let request = Counted(stage)
        #expect(await run(request) == .succeeded)
        #expect(request.reads.withLock { $0 } == 1)
        let plain = CachedSample(stage)
        #expect(await run(plain) == .succeeded)
        #expect(plain.isDataFromCache)
    }

    /// A request of a user, who may change when the response arrives.
    fileprivate final class Owned: CachedRequest, @unchecked Sendable {  // immutable
        enum Way: CaseIterable {
            case session, field, data
        }

        private let stage: CacheStage
        private let way: Way
        private let user: Lock<String>
        private let isLeft: Bool

        init(_ stage: CacheStage, _ way: Way, _ user: Lock<String>, isLeft: Bool = false) {
            (self.stage, self.way, self.user, self.isLeft) = (stage, way, user, isLeft)
            super.init()
            agent = stage.stage.agent
        }

        func setUser(_ name: String) {
            user.withLock { $0 = name }
            guard way == .session else { return }
            var session = RequestsConfiguration.defaultSessionConfiguration
            session.headers.update(name: "Authorization", value: name)
            stage.stage.configuration.sessionConfiguration = session
        }

        override func requestUrl() -> String { "count" }
        override func requestHeaderFieldValueDictionary() -> [String: String]? {
            way == .field ? ["X-Api-Key": user.withLock { $0 }] : nil
        }
        override func acceptableContentTypes() -> [String]? { nil }
        override func filterResponse() throws { if isLeft { setUser("b") } }
        override func cacheTimeInSeconds() -> Int { 60 }
        override func cacheSensitiveData() -> Any? { way == .data ? user.withLock { $0 } : nil }
        override func writeCacheAsynchronously() -> Bool { false }
        override func cacheStorage() -> any CacheStorage { stage.storage }
    }

    @Test(arguments: Owned.Way.allCases) fileprivate func `a response is stored for the user as whom it was asked for`(
        _ way: Owned.Way
    ) async throws {
        let user = Lock("")
        let request = Owned(stage, way, user, isLeft: true)
        request.setUser("a")
        try await request.response()
        #expect(user.withLock { $0 } == "b")
        let other = Owned(stage, way, user)
        #expect(!other.isResponseCached)
        other.setUser("a")
        #expect(other.isResponseCached)
    }

    @Test func `the order of an argument's members is irrelevant`() {
        let pairs = (0..<50).map { ("key\($0)", $0 as Any) }
        let keys = [pairs, pairs.reversed()].map { pairs in
            var members: [String: Any] = [:]
            for (name, value) in pairs { members[name] = ["n": value, "m": Optional(value) as Any] }
            let request = CachedSample(stage)
            request.argument = members
            return request.cacheKey
        }
        #expect(keys[0] != nil && keys[0] == keys[1])
    }

    @Test func `varying arguments may be excluded from the key`() async throws {
        for stamp in [1, 2] {
            let request = CachedSample(stage)
            request.volatile = "stamp"
            request.argument = ["id": 7, "stamp": stamp]
            try await request.response()
        }
        #expect(stage.count == 1)
    }

    @Test func `the CDN URL is part of the key where it is used`() {
        final class Asset: CachedRequest, @unchecked Sendable {
            override func requestUrl() -> String { "a" }
            override func useCDN() -> Bool { true }
        }
        let asset = Asset()
        asset.agent = stage.stage.agent
        let before = asset.cacheKey
        stage.stage.configuration.cdnUrl = "http://cdn.test/"
        #expect(asset.cacheKey != before)
        #expect(asset.cacheKey != CachedSample(stage, "a").cacheKey)
    }

    private struct Subdirectory: CacheDirPathFilter {
        let name: String
        func filterCacheDirPath(_ originPath: String, with request: BaseRequest) -> String { originPath + "/" + name }
    }

    private struct Directory: CacheDirPathFilter {
        let path: String
        func filterCacheDirPath(_ originPath: String, with request: BaseRequest) -> String { path }
    }

    @Test func `the directory is in the user's caches and passes through the filters`() {
        let request = CachedSample(stage)
        #expect(request.cacheDirectoryPath.hasSuffix("/LazyRequestCache"))
        stage.stage.configuration.addCacheDirPathFilter(Subdirectory(name: "one"))
        stage.stage.configuration.addCacheDirPathFilter(Subdirectory(name: "two"))
        #expect(request.cacheDirectoryPath.hasSuffix("/LazyRequestCache/one/two"))
    }

    @Test func `responses are stored on disk, replacing a file in the directory's place`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("in the way".utf8), to: "cache")
        stage.stage.configuration.addCacheDirPathFilter(Directory(path: file.path))
        for _ in 0..<2 {
            let request = CachedSample(stage)
            request.storage = nil
            try await request.response()
        }
        #expect(stage.count == 1)
        #expect(FileManager.default.fileExists(atPath: file.path + "/CACHEDIR.TAG"))
        let names = try FileManager.default.contentsOfDirectory(atPath: file.path + "/v2").filter { $0.count == 64 }
        try #require(names.count == 1)
        // A corrupt entry counts as a missing one.
        try Data("corrupt".utf8).write(to: URL(fileURLWithPath: file.path + "/v2/" + names[0]))
        let request = CachedSample(stage)
        request.storage = nil
        try await request.response()
        #expect(stage.count == 2)
    }

    @Test(arguments: [true, false])
    func `requests and a session's cache share one store, and meet only their own entries`(isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let storage: any CacheStorage =
            isInMemory ? MemoryCacheStorage() : DiskCacheStorage(directory: directory.url.appendingPathComponent("shared"))
        let server = try LoopbackServer { _, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data("{}".utf8)))
        }
        defer { server.stop() }
        let cache = ResponseCache(storage: storage)
        var configuration = SessionConfiguration()
        configuration.cache = cache
        configuration.proxy = .none
        let manager = SessionManager(configuration: configuration)
        let sample = CachedSample(stage, "shared")
        sample.storage = storage
        func load() async throws { _ = try await manager.request(server.url("/")).serializingData().value }
        for _ in 0..<2 {
            try await load()
            try await sample.response()
        }
        #expect(server.requestCount == 1 && stage.count == 1)
        #expect(try cache.entries().map(\.url) == [server.url("/")])
        try cache.removeAll()
        #expect(sample.isResponseCached)
        try await load()
        #expect(server.requestCount == 2)
        try storage.removeAll()
        #expect(!sample.isResponseCached)
        try await load()
        #expect(server.requestCount == 3)
    }
}
