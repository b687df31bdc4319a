// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewWebSocket
import Testing

/// TLS requirements of Curlew beyond those of libcurl.
@Suite(.timeLimit(.minutes(1)), .enabled(if: TLSAuthority.isAvailable)) struct TLSRulesTests {
    private let authority: TLSAuthority

    init() async throws {
        authority = try await TLSAuthority.shared()
    }

    private func manager(_ change: (inout TLSOptions) -> Void = { _ in }) -> SessionManager {
        makeManager {
            $0.tls.certificateAuthorityFile = authority.path("root.pem")
            change(&$0.tls)
        }
    }

    @Test("a body delimited by close is complete only with close_notify", arguments: ["1.2", "1.3"])
    func closeNotify(version: String) async throws {
        let server = try await TLSServer(authority, "good") { $0.maximumVersion = version }
        let manager = manager()
        let whole = await manager.request(server.url + "/unframed").serializingString().response
        #expect(whole.value == "body")
        let cut = await manager.request(server.url + "/unframed/cut").serializingString().response
        #expect(cut.error?.transferFailure?.kind == .connectionLost)
        #expect(cut.error?.transferFailure?.message.contains("close_notify") == true)
    }

    @Test("a download truncated this way is not moved to its destination") func truncatedDownload() async throws {
        let server = try await TLSServer(authority, "good")
        let directory = try TemporaryDirectory()
        let manager = manager()
        let response = await manager.download(server.url + "/unframed/cut", to: directory.file("file")).serializingURL().response
        #expect(response.error?.transferFailure?.kind == .connectionLost)
        #expect(!FileManager.default.fileExists(atPath: directory.file("file").path))
    }

    @Test("a host is trusted by what the file of authorities contains now, also on a connection that is open", arguments: [false, true])
    func replacedAuthorities(hasAdditional: Bool) async throws {
        let server = try await TLSServer(authority, "good")
        let directory = try TemporaryDirectory()
        let file = try directory.write(authority.data("root.pem"), to: "root.pem").path
        let additional = try CertificateAuthorities(authority.data("self.pem"))
        let manager = manager {
            $0.certificateAuthorityFile = file
            if hasAdditional { $0.additionalAuthorities = additional }
        }
        #expect(await manager.request(server.url).serializingString().response.value == "1 new")
        #expect(await manager.request(server.url).serializingString().response.value == "1 new")
        try await manager.stream(withSecureHostName: "localhost", port: server.port).write(Data("x".utf8))
        _ = try directory.write(authority.data("other-root.pem"), to: "root.pem")
        let refused = await manager.request(server.url).serializingString().response
        #expect(refused.error?.transferFailure?.kind == .serverCertificate)
        let stream = await #expect(throws: CurlewError.self) {
            try await manager.stream(withSecureHostName: "localhost", port: server.port).write(Data("x".utf8))
        }
        #expect(stream?.transferFailure?.kind == .serverCertificate)
        _ = try directory.write(authority.data("root.pem"), to: "root.pem")
        #expect(await manager.request(server.url).serializingString().response.value != nil)
    }

    @Test("hosts that never send close_notify can be exempted") func closeNotifyNotRequired() async throws {
        let server = try await TLSServer(authority, "good")
        let manager = manager { $0.requiresCloseNotify = false }
        #expect(await manager.request(server.url + "/unframed/cut").serializingString().response.value == "body")
    }

    @Test("a certificate with only a common name does not match the host", arguments: ["localhost", "mailed"])
    func commonName(_ certificate: String) async throws {
        let server = try await TLSServer(authority, certificate)
        let strict = manager()
        let response = await strict.request(server.url).serializingString().response
        #expect(response.error?.transferFailure?.kind == .serverCertificate)
        #expect(await server.nextConnection()?.bytes == 0)
        // Accepted if host names or chains are not verified.
        let lenient = manager { $0.verifiesHostName = false }
        #expect(await lenient.request(server.url).serializingString().response.value != nil)
    }

    @Test("nor over HTTP/2, by a later request or beside the refused one", .needsNginx) func commonNameOverHTTP2() async throws {
        let nginx = try Servers.nginx()
        let manager = makeManager {
            $0.tls.certificateAuthorityFile = nginx.authorities
            $0.resolve = ["nameless.test": ["127.0.0.1"]]
            $0.multiplexes = true
        }
        let url = nginx.tls.replacingOccurrences(of: "localhost", with: "nameless.test")
        for _ in 0..<3 {
            let responses = await withTaskGroup(of: DataResponse<String>.self) { group in
                for _ in 0..<4 { group.addTask { await manager.request(url).serializingString().response } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(responses.allSatisfy { $0.response == nil && $0.error != nil }, "\(responses)")
            #expect(responses.contains { $0.error?.transferFailure?.kind == .serverCertificate })
        }
    }

    @Test("nothing is sent to a host whose certificate has only a common name, over WebSockets and raw streams either")
    func commonNameOfStreams() async throws {
        let server = try await TLSServer(authority, "localhost")
        let manager = manager()
        let socket = manager.webSocket("wss://localhost:\(server.port)/", headers: ["Authorization": "Bearer secret"])
        await #expect {
            try await socket.open()
        } throws: {
            $0.transferFailure?.kind == .serverCertificate
        }
        #expect(await server.nextConnection()?.bytes == 0)
        let stream = manager.stream(withSecureHostName: "localhost", port: server.port)
        await #expect {
            try await stream.write(Data("secret".utf8))
        } throws: {
            $0.transferFailure?.kind == .serverCertificate
        }
        #expect(await server.nextConnection()?.bytes == 0)
    }

    @Test("a proxy is verified by the session's authorities and revocation lists, not by a host's pins")
    func proxyAuthorities() async throws {
        let (host, tunnel) = (try await TLSServer(authority, "self"), try await TLSServer.proxy())
        func options(_ proxy: TLSServer) -> RequestOptions { RequestOptions(proxy: .url("https://localhost:\(proxy.port)")) }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = callbackQueue
        configuration.tls.certificateAuthorityFile = authority.path("root.pem")
        let pins = [try authority.certificate("self")]
        let policy = ServerTrustPolicy.pinCertificates(certificates: pins, validateCertificateChain: true, validateHost: true)
        let pinned = SessionManager(
            configuration: configuration, serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": policy]))
        for (name, isAccepted) in [("good", true), ("self-elsewhere", false), ("self", false)] {
            let proxy = try await TLSServer(authority, name) { $0.relayPort = tunnel.port }
            let response = await pinned.request(host.url, options: options(proxy)).serializingString().response
            #expect((response.value != nil) == isAccepted, "\(name) \(String(describing: response.error))")
        }
        let lists = manager { $0.revocationListFile = authority.path("all.crl") }
        for (name, isAccepted) in [("good", true), ("revoked", false)] {
            let proxy = try await TLSServer(authority, name) { $0.closes = true }
            let response = await lists.request("http://localhost:1/", options: options(proxy)).serializingString().response
            #expect((response.value != nil) == isAccepted, "\(name) \(String(describing: response.error))")
        }
    }

    @Test("nor to a proxy whose certificate has only a common name") func commonNameOfProxy() async throws {
        let manager = manager()
        for (name, isAccepted) in [("localhost", false), ("good", true)] {
            let proxy = try await TLSServer(authority, name)
            let options = RequestOptions(proxy: .url("https://user:secret@localhost:\(proxy.port)"))
            for url in ["https://localhost:1/", "http://localhost:1/"] {
                _ = await manager.request(url, options: options).serializingString().response
                #expect((await proxy.nextConnection()?.bytes == 0) == !isAccepted, "\(name) \(url)")
                if isAccepted { break }
            }
            guard !isAccepted else { continue }
            // Also if hosts are not verified by their names: a request over plain HTTP has none to exempt.
            let lenient = self.manager { $0.verifiesHostName = false }
            _ = await lenient.request("http://localhost:1/", options: options).serializingString().response
            #expect(await proxy.nextConnection()?.bytes == 0)
        }
    }
}
