// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewCore

/// That a response to a signed request serves only requests of its signer, although no field of a request says so when it is looked up.
@Suite(.timeLimit(.minutes(1))) struct SignedResponseTests {
    struct Signer: ExchangeSigner {
        let identity: String
        var field = "Authorization"

        func sign(_ exchange: SignableExchange) -> HTTPHeaders { HTTPHeaders([HTTPHeader(name: field, value: "signed by \(identity)")]) }
    }

    private static func options(_ identity: String?, _ field: String = "Authorization") -> RequestOptions {
        RequestOptions(signer: identity.map { Signer(identity: $0, field: field) })
    }

    // A3.1
    @Test(
        "a response is stored for its signer alone, also one that is public",
        arguments: ["max-age=60", "max-age=60, public", "max-age=60, s-maxage=60"], ["Authorization", "X-Signature"])
    func stored(_ cacheControl: String, _ field: String) async throws {
        let count = Lock(0)
        let mock = MockTransport { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .response(200, ["Cache-Control": cacheControl], "\(number) \(request.headers[field] ?? "unsigned")")
        }
        let cache = ResponseCache.memory()
        for _ in 0..<2 {
            // Of two sessions, with one cache.
            let manager = SessionManager(mock: mock) { $0.cache = cache }
            for (identity, expected) in [(nil, "1 unsigned"), ("a", "2 signed by a"), ("b", "3 signed by b")] as [(String?, String)] {
                let request = manager.request("http://mock/a", options: Self.options(identity, field))
                #expect(try await request.serializingString().value == expected)
            }
        }
        let signed = SessionManager(mock: mock) {
            $0.cache = cache
            $0.signer = Signer(identity: "b", field: field)
        }
        #expect(try await signed.request("http://mock/a").serializingString().value == "3 signed by b")
        #expect(mock.started.count == 3)
    }

    // A3.1
    @Test("a stale response is validated by a signed request, whose signature covers the conditions") func validated() async throws {
        struct Conditions: ExchangeSigner {
            let identity = "a"
            func sign(_ exchange: SignableExchange) -> HTTPHeaders { ["X-Signed": exchange.headers["If-None-Match"] ?? "none"] }
        }
        let mock = MockTransport { request in
            request.headers["X-Signed"] == "\"v\""
                ? .response(304) : .response(200, ["Cache-Control": "no-cache", "ETag": "\"v\""], "body")
        }
        let manager = SessionManager(mock: mock) { $0.cache = .memory() }
        for _ in 0..<2 {
            let request = manager.request("http://mock/a", options: RequestOptions(signer: Conditions()))
            #expect(try await request.serializingString().value == "body")
        }
        #expect(mock.started.all.map { $0.request.headers["X-Signed"] } == ["none", "\"v\""])
    }

    // A3.1
    @Test("misses that wait for each other's response are those of one signer") func misses() async throws {
        let transport = ScriptedTransport()
        var configuration = SessionConfiguration()
        configuration.cache = ResponseCache(storage: MemoryCacheStorage(), coalescesMisses: true)
        let manager = SessionManager(configuration: configuration, transport: transport)
        let identities = ["a", "a", "b", nil]
        let requests = identities.map { manager.request("http://mock/a", options: Self.options($0)) }
        for index in 0..<3 {
            let exchange = await transport.started[index]
            exchange.respond(200, ["Cache-Control": "max-age=60, public"], exchange.request.headers["Authorization"] ?? "unsigned")
        }
        var bodies: [String] = []
        for request in requests { bodies.append(try await request.serializingString().value) }
        #expect(bodies == ["signed by a", "signed by a", "signed by b", "unsigned"])
        #expect(transport.started.count == 3)
    }

    // A3.1
    @Test("caches of other layers distinguish signers, of requests and of sessions") func identities() throws {
        let manager = SessionManager(mock: MockTransport())
        let signed = SessionManager(mock: MockTransport()) { $0.signer = Signer(identity: "a") }
        let request = URLRequest(url: try #require(URL(string: "http://mock/a")))
        let senders = [nil, "a", "b"].map { manager.senderIdentity(of: request, Self.options($0)) }
        #expect(Set(senders).count == 3 && !senders.contains(nil))
        #expect(signed.partitionParts(for: "http://mock/a", nil) == manager.partitionParts(for: "http://mock/a", Self.options("a")))
        #expect(signed.partitionParts(for: "http://mock/a", nil) != manager.partitionParts(for: "http://mock/a", nil))
    }
}
