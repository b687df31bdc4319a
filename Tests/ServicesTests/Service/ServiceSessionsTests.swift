// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewHTTP
import CurlewTestSupport
import CurlewURLLoading
import Testing

@testable import CurlewServices

@Suite(.timeLimit(.minutes(1)))
struct ServiceSessionsTests {
    private static let storage = URLCredentialStorage()
    private static let queue = DispatchQueue(label: "services.other")

    private final class Silent: EventMonitor {}

    private static func configuration(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.maximumBodySize = 4711
        change(&configuration)
        return configuration
    }

    private static let others: [SessionConfiguration] = [
        configuration { $0.maximumBodySize = 4712 }, configuration { $0.headers = ["A": "1"] },
        configuration { $0.idleTimeout = .seconds(1) }, configuration { $0.maximumConnectionsPerHost = 1 },
        configuration { $0.redirects.limit = 1 }, configuration { $0.proxy = .none }, configuration { $0.proxy = .url("http://a") },
        configuration { $0.callbackQueue = queue }, configuration { $0.credentialStorage = storage },
        configuration { $0.protocolClasses = [URLProtocol.self] }, configuration { $0.eventMonitors = [Silent()] },
        configuration { $0.cachePolicy = .returnCacheDataDontLoad }, configuration { $0.allowsCellularAccess = false },
        configuration { $0.temporaryDirectory = URL(fileURLWithPath: "/var") }, configuration { $0.tls.minimumVersion = .v1_3 },
    ]

    @Test func equalConfigurationsShareASession() {
        #expect(ServiceSessions.manager(for: Self.configuration()) === ServiceSessions.manager(for: Self.configuration()))
        #expect(ServiceSessions.manager(for: nil) === SessionManager.default)
    }

    @Test func everyDifferenceDistinguishesConfigurations() {
        let keys = ([Self.configuration()] + Self.others).map { ConfigurationKey($0) }
        #expect(Set(keys).count == keys.count)
        for other in Self.others { #expect(ConfigurationKey(other) == ConfigurationKey(other)) }
    }

    @Test func fieldsOfConfigurationsAreComparedByTheirBytes() {
        let keys = ["caf\u{E9}", "cafe\u{301}"].map { text in ConfigurationKey(Self.configuration { $0.headers = ["X-User": text] }) }
        #expect(keys[0] != keys[1])
    }

    @Test func serviceUsesTheSessionOfItsConfiguration() async throws {
        let server = try LoopbackServer { request, _ in .ok(request.header("X-Session") ?? "") }
        defer { server.stop() }
        let service = AnyHTTPService(
            at: server.url(""), usesSecureProtocol: false,
            sessionConfiguration: Self.configuration {
                $0.headers = ["X-Session": "own"]
                $0.proxy = .none
            })
        #expect(try await TestRequest().schedule(with: service).value == "own")
        #expect(service.sessionManager === service.sessionManager)
    }

    @Test func `a service whose configuration has a cache answers its second call from it`() async throws {
        let server = try LoopbackServer { request, _ in
            ServerResponse(status: 200, headers: [ServerField("Cache-Control", "max-age=60")], body: .data(Data(request.path.utf8)))
        }
        defer { server.stop() }
        let cache = ResponseCache.memory()
        func service() -> AnyHTTPService {
            AnyHTTPService(
                at: server.url(""), usesSecureProtocol: false,
                sessionConfiguration: Self.configuration {
                    $0.cache = cache
                    $0.proxy = .none
                })
        }
        for path in ["a", "a", "b", "a"] {
            #expect(try await TestRequest(routes: [path]).schedule(with: service()).value == "/" + path)
        }
        #expect(server.requestCount == 2 && cache.statistics.hits == 2)
        // A cache of its own is another session.
        let other = Self.configuration { $0.cache = .memory() }
        let first = Self.configuration { $0.cache = cache }
        #expect(ConfigurationKey(other) != ConfigurationKey(first) && ConfigurationKey(first) == ConfigurationKey(first))
    }
}
