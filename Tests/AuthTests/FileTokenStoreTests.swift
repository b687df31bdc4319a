// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileTokenStoreTests {
    private let directory: TemporaryDirectory
    private let file: URL

    init() throws {
        directory = try TemporaryDirectory()
        file = directory.file("tokens.json")
    }

    // A4.2, A4.3
    @Test func `two processes with one file make one refresh`() async throws {
        let server = try AuthorizationServer(.revokingFamily)
        defer { server.stop() }
        try await FileTokenStore<OAuthTokens>.file(file).store(.expired())
        let probes = try (0..<2).map { _ in try ChildProcess(Probe.path(of: "curlew-auth-probe"), [server.url(), file.path, "20"]) }
        for probe in probes { #expect(await probe.readLine() == "ready=1") }
        for probe in probes { probe.writeLine() }
        for probe in probes {
            let report = await Probe.Report(probe)
            #expect(report["right"] == 20 && report.status == 0)
        }
        #expect(server.forms.map { $0["refresh_token"] } == [["r0"]])
        let stored = try await FileTokenStore<OAuthTokens>.file(file).credential()
        #expect(stored?.accessToken == "a1" && stored?.refreshToken == "r1")
    }

    // A4.2
    @Test func `only the owner has access`() async throws {
        let file = directory.file("a/b/tokens.json")
        let store = FileTokenStore<OAuthTokens>.file(file)
        #expect(try await store.credential() == nil)
        let tokens = OAuthTokens(accessToken: "a", expiration: Date(), refreshToken: "r", scope: ["s"], idToken: "i")
        try await store.store(tokens)
        #expect(try await store.credential() == tokens)
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(file.path) == 0o600 && mode(directory.url.path + "/a") == 0o700)
        #expect(try contents(of: file.deletingLastPathComponent()) == [".tokens.json.lock", "tokens.json"])
        try await store.remove()
        #expect(try contents(of: file.deletingLastPathComponent()) == [".tokens.json.lock"])
        #expect(try await store.update { $0 } == nil)
    }

    @Test func `a change that fails leaves the file`() async throws {
        let store = FileTokenStore<OAuthTokens>.file(file)
        try await store.store(OAuthTokens(accessToken: "a"))
        await #expect(throws: TestError.self) { try await store.update { _ in throw TestError("x") } }
        #expect(try await store.credential()?.accessToken == "a")
    }

    @Test func `other content, and a link, are refused`() async throws {
        try Data("{}".utf8).write(to: file)
        let store = FileTokenStore<OAuthTokens>.file(file)
        await #expect(throws: OAuthError.self) { try await store.credential() }
        await #expect(throws: OAuthError.self) { try await store.update { _ in OAuthTokens(accessToken: "a") } }
        #expect(try Data(contentsOf: file) == Data("{}".utf8))
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        await #expect(throws: CocoaError.self) { try await FileTokenStore<OAuthTokens>.file(link).credential() }
    }

    /// What is in the place of the file.
    enum Obstacle: CaseIterable, Sendable {
        case otherContent, link, tooLarge
    }

    // A4.2
    @Test(arguments: Obstacle.allCases) func `a file that can't be read prevents neither signing in nor out`(obstacle: Obstacle)
        async throws
    {
        let other = directory.file("other")
        try Data("{}".utf8).write(to: other)
        func obstruct() throws {
            try? FileManager.default.removeItem(at: file)
            switch obstacle {
            case .otherContent: try Data("{".utf8).write(to: file)
            case .link: try FileManager.default.createSymbolicLink(at: file, withDestinationURL: other)
            case .tooLarge: try Data(count: 2 << 20).write(to: file)
            }
        }
        let server = try AuthorizationServer()
        defer { server.stop() }
        let authenticator = OAuthAuthenticator(server.client(), store: .file(file))
        try obstruct()
        await #expect(throws: (any Error).self) { try await authenticator.credential(replacing: nil, for: makeManager()) }
        let tokens = OAuthTokens(accessToken: "a")
        try await authenticator.signIn(with: tokens)
        #expect(try await authenticator.credential(replacing: nil, for: makeManager()) == tokens)
        try obstruct()
        try await authenticator.signOut()
        #expect(try await authenticator.store.credential() == nil)
        #expect(try Data(contentsOf: other) == Data("{}".utf8))
        #expect(try contents(of: directory) == [".tokens.json.lock", "other"])
    }

    // A4.2
    @Test func `a sign-in waits for the change before it`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let store = FileTokenStore<OAuthTokens>.file(file)
        let first = Task {
            try await store.update { _ in
                _ = await gate.wait()
                return OAuthTokens(accessToken: "old")
            }
        }
        #expect(await gate.arrivals(1))
        let second = Task { try await store.store(OAuthTokens(accessToken: "new")) }
        gate.open()
        _ = try await first.value
        try await second.value
        #expect(try await store.credential()?.accessToken == "new")
    }

    @Test func `a lock that is kept is an error`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let file = file
        let holder = Task {
            try await FileTokenStore<OAuthTokens>.file(file).update { _ in
                _ = await gate.wait()
                return OAuthTokens(accessToken: "held")
            }
        }
        #expect(await gate.arrivals(1))
        let other = FileTokenStore<OAuthTokens>.file(file, lockTimeout: .milliseconds(50))
        let error = await AuthTests.error { try await other.update { _ in nil } }
        guard case OAuthError.locked(let path)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(path == file.path)
        gate.open()
        _ = try await holder.value
        #expect(try await other.credential()?.accessToken == "held")
    }
}
