// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

// Through squid, dante and microsocks to nginx.
@Suite(.timeLimit(.minutes(1)), .needsProxies, .needsNginx) struct ProxyTests {
    enum Kind: String, CaseIterable, Sendable {
        case http, httpWithPassword, https, socks4, socks5, socks5h, socks5WithPassword, socks5hWithPassword

        func url() throws -> String {
            let proxies = try Servers.proxies()
            return switch self {
            case .http: "http://\(proxies.open)"
            case .httpWithPassword: "http://user:passwd@\(proxies.authenticated)"
            case .https: "https://\(proxies.secure)"
            case .socks4, .socks5, .socks5h: "\(rawValue)://\(proxies.socks)"
            case .socks5WithPassword: "socks5://user:passwd@\(proxies.authenticatedSocks)"
            case .socks5hWithPassword: "socks5h://user:passwd@\(proxies.authenticatedSocks)"
            }
        }

        /// Whether the proxy interprets requests outside tunnels.
        var isHTTP: Bool { [.http, .httpWithPassword, .https].contains(self) }
    }

    private func manager(_ proxy: ProxyPolicy) throws -> SessionManager {
        let authorities = try Servers.nginx().authorities
        return makeManager {
            $0.proxy = proxy
            $0.tls.certificateAuthorityFile = authorities
            // The servers have no others, and libcurl 8.14.1 gives a SOCKS5 proxy only the first address of a name that it resolves itself.
            $0.ipVersion = .v4
        }
    }

    private static func failure(_ error: (any Error)?) -> TransferFailure? {
        if case .transferFailed(let failure)? = error as? CurlewError { failure } else { nil }
    }

    @Test("requests go through a proxy", arguments: Kind.allCases)
    func plain(kind: Kind) async throws {
        let manager = try manager(.url(kind.url()))
        let response = await manager.request(try Servers.nginx().http + "/").validate().serializingString().response
        #expect(response.value == "curlew\n")
        #expect((response.response?.value(forHTTPHeaderField: "Via")?.contains("squid") == true) == kind.isHTTP)
    }

    @Test("TLS is tunnelled, and the proxy sees nothing of the request", arguments: Kind.allCases)
    func secure(kind: Kind) async throws {
        let manager = try manager(.url(kind.url()))
        let nginx = try Servers.nginx()
        for base in [nginx.tls, nginx.tlsHTTP1] {
            let response = await manager.request(base + "/").validate().serializingString().response
            #expect(response.value == "curlew\n")
            #expect(response.response?.value(forHTTPHeaderField: "Via") == nil)
        }
    }

    @Test("a large body is transferred completely in both directions", arguments: [Kind.http, .https, .socks5h])
    func large(kind: Kind) async throws {
        let manager = try manager(.url(kind.url()))
        let body = GeneratedBody().data(count: 5_000_000)
        for base in [try Servers.nginx().http, try Servers.nginx().tlsHTTP1] {
            let sent = try await manager.upload(body, to: base + "/upload").validate().serializingString().value
            #expect(sent == "5000000\n")
            let received = try await manager.request(base + "/big.bin", headers: ["Range": "bytes=0-4999999"]).serializingData().value
            #expect(received.count == 5_000_000)
        }
    }

    @Test("an HTTP proxy that requires another password responds with 407 and rejects tunnels", arguments: ["", "user:wrong@"])
    func rejected(user: String) async throws {
        let manager = try manager(.url("http://\(user)\(Servers.proxies().authenticated)"))
        let nginx = try Servers.nginx()
        let plain = await manager.request(nginx.http + "/").validate().serializingData().response
        #expect(plain.response?.statusCode == 407)
        #expect(plain.error != nil)
        let tunnel = await manager.request(nginx.tls + "/").validate().serializingData().response
        let failure = Self.failure(tunnel.error)
        #expect(failure?.kind == .proxy)
        #expect(failure?.requestWasSent == false)
        #expect(!String(describing: tunnel.error).contains("wrong"))
    }

    @Test("a SOCKS proxy that requires another password is an error")
    func rejectedSocks() async throws {
        let manager = try manager(.url("socks5h://user:wrong@\(Servers.proxies().authenticatedSocks)"))
        let response = await manager.request(try Servers.nginx().http + "/").serializingData().response
        #expect(Self.failure(response.error)?.kind == .proxy)
        #expect(!String(describing: response.error).contains("wrong"))
    }

    @Test("an HTTPS proxy with the wrong name is rejected before anything is sent")
    func wrongName() async throws {
        let port = try #require(Servers.proxies().secure.split(separator: ":").last)
        let manager = try manager(.url("https://127.0.0.1:\(port)"))
        let response = await manager.request(try Servers.nginx().http + "/").serializingData().response
        #expect(Self.failure(response.error)?.requestWasSent == false)
        #expect(response.error != nil)
    }

    @Test("exceptions connect directly, so the proxy may be unreachable", arguments: ["127.0.0.1", "*", "127.0.0.0/8"])
    func exceptions(except: String) async throws {
        let manager = try manager(.url("http://\(Servers.proxies().authenticated)", except: [except]))
        let response = await manager.request(try Servers.nginx().http + "/").validate().serializingString().response
        #expect(response.value == "curlew\n")
        #expect(response.response?.value(forHTTPHeaderField: "Via") == nil)
    }
}
