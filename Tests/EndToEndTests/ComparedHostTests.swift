// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTesting
import CurlewURLLoading
import CurlewWebSocket
import Foundation
import Testing

/// Policies apply to a host in every spelling, in the policy and in the URL, for every kind of request.
@Suite(.timeLimit(.minutes(1))) struct ComparedHostTests {
    private static let spellings = ["xn--bcher-kva.example", "b\u{FC}cher.example", "B\u{DC}CHER.example."]
    /// The same in texts of URLs, which are ASCII.
    private static func inURL(_ host: String) -> String { host.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed) ?? host }

    private let authority: CertificateAuthority
    private let server: LoopbackServer

    init() throws {
        authority = try CertificateAuthority()
        let identity = try authority.issue("xn--bcher-kva.example", "localhost", "127.0.0.1", "::1")
        server = try LoopbackServer(tls: ServerTLS(identity)) { request, _ in
            guard request.path.hasPrefix("/to/") else { return .ok("in") }
            return ServerResponse.status(302).header("Location", String(request.path.dropFirst(4)).removingPercentEncoding ?? "")
        }
    }

    /// A pin that no server has.
    private var pinned: ServerTrustPolicy {
        get throws {
            let other = try #require(Certificate(pem: try CertificateAuthority(name: "other").certificate))
            return .pinPublicKeys(publicKeys: [other.publicKey], validateCertificateChain: true, validateHost: true)
        }
    }

    private func manager(
        _ policies: [String: ServerTrustPolicy], _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.proxy = .none
        configuration.callbackQueue = callbackQueue
        configuration.tls.certificateAuthorities = authority.certificate
        configuration.resolve["b\u{FC}cher.example"] = ["127.0.0.1"]
        change(&configuration)
        return SessionManager(configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies))
    }

    private func kind(_ url: String, _ manager: SessionManager) async -> TransferFailure.Kind? {
        await manager.request(url).serializingString().response.error?.transferFailure?.kind
    }

    @Test("a pin applies to requests, redirects, WebSockets and raw streams", arguments: spellings) func pins(_ key: String) async throws {
        let manager = manager([key: try pinned])
        for host in Self.spellings {
            let authority = "\(Self.inURL(host)):\(server.port)"
            #expect(await kind("https://\(authority)/", manager) == .serverCertificate, "\(host)")
            let target = "https://\(authority)/".addingPercentEncoding(withAllowedCharacters: .urlHostAllowed) ?? ""
            #expect(await kind("https://localhost:\(server.port)/to/\(target)", manager) == .serverCertificate, "\(host)")
            let socket = await #expect(throws: (any Error).self) { try await manager.webSocket("wss://\(authority)/").open() }
            #expect(socket?.transferFailure?.kind == .serverCertificate, "\(host)")
            let stream = manager.stream(withSecureHostName: host, port: server.port)
            let failure = await #expect(throws: (any Error).self) { try await stream.write(Data("GET / HTTP/1.1\r\n\r\n".utf8)) }
            #expect(failure?.transferFailure?.kind == .serverCertificate, "\(host)")
        }
        // Only the requests that were redirected.
        #expect(server.requestCount == Self.spellings.count)
    }

    @Test("without the pin the same requests succeed") func unpinned() async throws {
        let manager = manager(["other.example": try pinned])
        // With a trailing dot OpenSSL compares the name as it is.
        for host in Self.spellings.dropLast() {
            #expect(await manager.request("https://\(Self.inURL(host)):\(server.port)/").serializingString().response.value == "in")
        }
    }

    @Test("a pin of an address applies to its other notations", arguments: ["127.0.0.1", "127.1", "0x7f.1"])
    func addresses(_ key: String) async throws {
        let manager = manager([key: try pinned])
        for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1"] {
            #expect(await kind("https://\(host):\(server.port)/", manager) == .serverCertificate, "\(host)")
            let stream = manager.stream(withSecureHostName: host, port: server.port)
            let failure = await #expect(throws: (any Error).self) { try await stream.write(Data("GET / HTTP/1.1\r\n\r\n".utf8)) }
            #expect(failure?.transferFailure?.kind == .serverCertificate, "\(host)")
        }
        #expect(server.requestCount == 0)
    }

    @Test("a wildcard's pin applies one label below") func wildcard() async throws {
        let manager = manager(["*.example": try pinned])
        #expect(await kind("https://b%C3%BCcher.example:\(server.port)/", manager) == .serverCertificate)
        #expect(await kind("https://localhost:\(server.port)/", manager) == nil)
    }

    @Test("with a key that matches no host nothing is connected to", arguments: ["https://localhost", "localhost:443"])
    func unusableKey(_ key: String) async throws {
        let manager = manager([key: try pinned])
        let response = await manager.request("https://localhost:\(server.port)/").serializingString().response
        let failure = try #require(response.error?.transferFailure)
        #expect(failure.kind == .configuration && failure.message.contains("\"\(key)\"") && failure.message.contains("without scheme"))
        let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
        let other = await #expect(throws: (any Error).self) { try await stream.write(Data("x".utf8)) }
        #expect(other?.transferFailure?.kind == .configuration)
        let socket = await #expect(throws: (any Error).self) { try await manager.webSocket("wss://localhost:\(server.port)/").open() }
        #expect(socket?.transferFailure?.kind == .configuration)
        #expect(server.connectionCount == 0)
    }

    @Test("a closure is given the host in normal form") func closures() async throws {
        let hosts = Log<String>()
        let custom = ServerTrustPolicy.customEvaluation { trust, host in
            hosts.append(trust.host)
            hosts.append(host)
            return true
        }
        let first = manager(["B\u{DC}CHER.example": custom])
        #expect(await kind("https://b%C3%BCcher.EXAMPLE:\(server.port)/", first) == nil)
        let second = manager([:])
        second.delegate.sessionDidReceiveChallenge = { _, challenge, completion in
            hosts.append(challenge.protectionSpace.host)
            completion(.performDefaultHandling, nil)
        }
        #expect(await kind("https://b%C3%BCcher.EXAMPLE:\(server.port)/", second) == nil)
        #expect(hosts.elements == Array(repeating: "xn--bcher-kva.example", count: 3))
    }

    @Test(
        "a key of resolve or connectTo that matches no host is refused",
        arguments: ["https://localhost", "*.example.org", "localhost:http", "localhost:0", "", "*:", "a/b:1"])
    func unusableRoute(_ key: String) async throws {
        for change in [{ $0.resolve[key] = ["127.0.0.1"] }, { $0.connectTo[key] = "localhost" }] as [(inout SessionConfiguration) -> Void] {
            let response = await manager([:], change).request("https://localhost:\(server.port)/").serializingString().response
            let failure = try #require(response.error?.transferFailure)
            #expect(failure.kind == .configuration && failure.message.contains("\"\(key)\""))
        }
    }

    @Test(
        "routes apply to every spelling of their host", arguments: ["B\u{DC}CHER.example", "xn--bcher-kva.example.", "b%C3%BCcher.example"])
    func routes(_ key: String) async throws {
        for change in [
            { $0.resolve = ["\(key):\(server.port)": ["127.0.0.1"]] },
            {
                $0.resolve = [:]
                $0.connectTo = [key: "localhost:\(server.port)"]
            },
        ] as [(inout SessionConfiguration) -> Void] {
            #expect(await kind("https://b%C3%BCcher.example:\(server.port)/", manager([:], change)) == nil)
        }
    }

    @Test("cookies and HSTS know a host by every spelling") func cookies() async throws {
        let plain = try LoopbackServer { request, _ in .ok(request.header("Cookie") ?? "none").header("Set-Cookie", "a=1") }
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        for usesFoundation in [false, true] {
            let manager = manager([:]) { if usesFoundation { $0.httpCookieStorage = storage } else { $0.cookies = .memory } }
            _ = await manager.request("http://127.1:\(plain.port)/").serializingString().response
            for host in ["127.0.0.1", "2130706433", "127.1"] {
                #expect(await manager.request("http://\(host):\(plain.port)/").serializingString().response.value == "a=1", "\(host)")
            }
        }
        let hosts = HSTSStore.memory
        try hosts.set(HSTSHost(host: "B\u{DC}CHER.example.", expirationDate: .distantFuture))
        for host in Self.spellings { #expect(try hosts.isKnown(host)) }
    }
}
