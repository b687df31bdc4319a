// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

/// Challenges for the client's certificate, by the delegates of a session and of a task.
@Suite(.timeLimit(.minutes(1))) struct ClientCertificateTests {
    private static let versions: [ServerTLS.Version] = [.v1_2, .v1_3]

    /// Accepts servers, and answers challenges for a certificate as it is set up to.
    private final class Delegate: NSObject, URLSessionDelegate {
        let methods = Log<String>()
        let issuers = Log<[Data]?>()
        let queues = Log<OperationQueue?>()
        private let answer: @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)

        init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)) {
            self.answer = answer
        }

        convenience init(_ identity: ClientCertificate) {
            self.init { _ in (.useCredential, URLCredential(identity: identity)) }
        }

        var count: Int { methods.elements.count { $0 == NSURLAuthenticationMethodClientCertificate } }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            methods.append(challenge.protectionSpace.authenticationMethod)
            queues.append(OperationQueue.current)
            if let trust = challenge.protectionSpace.serverTrust { return completionHandler(.useCredential, URLCredential(trust: trust)) }
            issuers.append(challenge.protectionSpace.distinguishedNames)
            let (disposition, credential) = answer(challenge)
            completionHandler(disposition, credential)
        }
    }

    private let authority: CertificateAuthority
    private let clients: CertificateAuthority

    init() throws {
        authority = try CertificateAuthority()
        clients = try CertificateAuthority(name: "Clients")
    }

    private func identity(_ name: String, of authority: CertificateAuthority? = nil) throws -> ClientCertificate {
        let identity = try (authority ?? clients).issue(name, usage: .client)
        return .pem(Data(identity.chain.utf8), key: Data(identity.key.utf8))
    }

    /// A server that responds with the name of the client's certificate.
    private func makeServer(_ version: ServerTLS.Version? = nil, requires: Bool = true) throws -> LoopbackServer {
        var tls = ServerTLS(try authority.issue(), clientAuthority: clients)
        tls.requiresClientCertificate = requires
        (tls.minimumVersion, tls.maximumVersion) = (version, version)
        return try LoopbackServer(tls: tls) { _, connection in .ok(connection.tls?.clientName ?? "none") }
    }

    private func session(_ delegate: (any URLSessionDelegate)?, _ queue: OperationQueue? = nil) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    private func get(_ server: LoopbackServer, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)? = nil) async throws
        -> String
    {
        let (data, _) = try await session.data(from: server.address("/"), delegate: delegate)
        return String(decoding: data, as: UTF8.self)
    }

    private func code(_ body: () async throws -> String) async -> URLError.Code? {
        do {
            _ = try await body()
            return nil
        } catch {
            return (error as? URLError)?.code
        }
    }

    // U2.8
    @Test(arguments: versions) func `the delegate is asked on its queue after the server was accepted, once, with the issuers`(
        version: ServerTLS.Version
    ) async throws {
        let server = try makeServer(version)
        let delegate = Delegate(try identity("Ada"))
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = session(delegate, queue)
        defer { session.invalidateAndCancel() }
        for _ in 0..<2 { #expect(try await get(server, session) == "Ada") }
        #expect(delegate.methods.elements == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
        #expect(delegate.queues.elements.allSatisfy { $0 === queue })
        let names = try #require(delegate.issuers.elements.first ?? nil)
        #expect(names.count == 1 && names.first?.suffix(7) == Data("Clients".utf8))
    }

    // U2.8
    @Test(arguments: versions) func `without an identity the server decides, and a cancelled challenge cancels the task`(
        version: ServerTLS.Version
    ) async throws {
        let servers = (requesting: try makeServer(version, requires: false), requiring: try makeServer(version))
        for disposition in [URLSession.AuthChallengeDisposition.performDefaultHandling, .rejectProtectionSpace] {
            let session = session(Delegate { _ in (disposition, nil) })
            defer { session.invalidateAndCancel() }
            #expect(try await get(servers.requesting, session) == "none")
            let code = await code { try await get(servers.requiring, session) }
            #expect(
                code == .clientCertificateRequired || version == .v1_2 && code == .secureConnectionFailed, "\(String(describing: code))")
        }
        let session = session(Delegate { _ in (.cancelAuthenticationChallenge, nil) })
        defer { session.invalidateAndCancel() }
        for server in [servers.requesting, servers.requiring] {
            #expect(await code { try await get(server, session) } == .cancelled)
        }
        #expect(servers.requesting.requests.count == 2 && servers.requiring.requests.isEmpty)
    }

    // U2.8
    @Test func `sessions with different identities reach the same server at once`() async throws {
        let server = try makeServer()
        let delegates = [Delegate(try identity("Ada")), Delegate(try identity("Bob"))]
        let sessions = delegates.map { session($0) }
        defer { for session in sessions { session.invalidateAndCancel() } }
        let values = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for index in 0..<8 { group.addTask { (index, try await get(server, sessions[index % 2])) } }
            return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        for index in 0..<8 { #expect(values[index] == ["Ada", "Bob"][index % 2]) }
        #expect(delegates.map(\.count) == [1, 1])
    }

    // U2.8
    @Test(arguments: versions) func `after a refused certificate the next task asks again`(version: ServerTLS.Version) async throws {
        let server = try makeServer(version)
        let (ada, stranger) = (try identity("Ada"), try identity("Ada", of: CertificateAuthority(name: "Strangers")))
        let delegate = Delegate { challenge in
            (.useCredential, URLCredential(identity: challenge.previousFailureCount == 0 ? stranger : ada))
        }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        #expect(await code { try await get(server, session) } != nil)
        for _ in 0..<2 { #expect(try await get(server, session) == "Ada") }
        #expect(delegate.count == 2)
    }

    // U2.8: the task's own delegate comes first, and what it chooses is not used for other tasks.
    @Test func `a task's delegate answers for its task only`() async throws {
        final class Own: NSObject, URLSessionTaskDelegate {
            let identity: ClientCertificate
            let log = Log<String>()

            init(_ identity: ClientCertificate) { self.identity = identity }

            func urlSession(
                _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
            ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
                log.append(challenge.protectionSpace.authenticationMethod)
                if let trust = challenge.protectionSpace.serverTrust { return (.useCredential, URLCredential(trust: trust)) }
                return (.useCredential, URLCredential(identity: identity))
            }
        }
        let server = try makeServer(requires: false)
        let delegate = Delegate { _ in (.performDefaultHandling, nil) }
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let own = Own(try identity("Ada"))
        #expect(try await get(server, session) == "none")
        #expect(try await get(server, session, own) == "Ada")
        #expect(try await get(server, session) == "none")
        #expect(own.log.elements == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
        #expect(delegate.count == 1)
    }

    // U2.8
    @Test func `a task that is cancelled before the answer ends, and the next one asks`() async throws {
        final class Waiting: NSObject, URLSessionDelegate {
            let pending = Log<@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void>()

            func urlSession(
                _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
                completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) {
                if let trust = challenge.protectionSpace.serverTrust {
                    return completionHandler(.useCredential, URLCredential(trust: trust))
                }
                pending.append(completionHandler)
            }
        }
        let server = try makeServer()
        let delegate = Waiting()
        let session = session(delegate)
        defer { session.invalidateAndCancel() }
        let errors = Log<URLError.Code?>()
        let task = session.dataTask(with: try server.address("/")) { errors.append(($2 as? URLError)?.code) }
        task.resume()
        await delegate.pending.wait(for: 1)
        task.cancel()
        await errors.wait(for: 1)
        #expect(errors.elements == [.cancelled])
        let second = Task { try await get(server, session) }
        await delegate.pending.wait(for: 2)
        // The answer to the first task's challenge comes to nothing.
        delegate.pending.elements.first?(.cancelAuthenticationChallenge, nil)
        delegate.pending.elements.last?(.useCredential, URLCredential(identity: try identity("Ada")))
        #expect(try await second.value == "Ada")
    }
}
