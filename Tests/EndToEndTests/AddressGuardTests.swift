// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// The guard against server-side request forgery, with ports and proxies.
@Suite(.timeLimit(.minutes(1))) struct AddressGuardTests {
    private static func loopback(_ change: (inout AddressPolicy) -> Void = { _ in }) -> AddressPolicy {
        var policy = AddressPolicy.publicOnly(except: AddressRange("127.0.0.0/8").map { [$0] } ?? [])
        change(&policy)
        return policy
    }

    private func failure(_ response: DataResponse<String>) -> TransferFailure? { response.error?.transferFailure }

    private func get(_ url: String, _ manager: SessionManager, _ options: RequestOptions? = nil) async -> DataResponse<String> {
        await manager.request(url, options: options).validate().serializingString().response
    }

    @Test("a port that is not allowed is not connected to, after a redirect or by another route either") func ports() async throws {
        let internalServer = try LoopbackServer { _, _ in .ok("internal") }
        let server = try LoopbackServer { request, _ in request.path == "/to" ? .redirect(to: internalServer.url("/")) : .ok("fine") }
        let manager = makeManager { $0.addresses.ports = [server.port] }
        #expect(await get(server.url("/"), manager).value == "fine")
        for url in [internalServer.url("/"), server.url("/to")] {
            let failure = failure(await get(url, manager))
            #expect(failure?.kind == .addressNotAllowed)
            #expect(failure?.message.contains("port \(internalServer.port) is not allowed") == true)
        }
        let moved = RequestOptions(connectTo: ["*": "127.0.0.1:\(internalServer.port)"])
        #expect(failure(await get(server.url("/"), manager, moved))?.kind == .addressNotAllowed)
        let stream = manager.stream(withHostName: "127.0.0.1", port: internalServer.port)
        await #expect {
            try await stream.write(Data("x".utf8))
        } throws: {
            $0.transferFailure?.kind == .addressNotAllowed
        }
        #expect(internalServer.connectionCount == 0)
    }

    @Test("a connection that a request without the guard has made is not used by one with it") func pooled() async throws {
        let server = try LoopbackServer { _, _ in .ok("internal") }
        let manager = makeManager()
        #expect(await get(server.url("/"), manager).value == "internal")
        var otherPort = AddressPolicy.any
        otherPort.ports = [443]
        for policy in [.publicOnly, otherPort] {
            #expect(failure(await get(server.url("/"), manager, RequestOptions(addresses: policy)))?.kind == .addressNotAllowed)
        }
        #expect(server.requests.count == 1)
    }

    @Test("a proxy is refused where addresses are limited, with what to set") func proxies() async throws {
        let proxy = try LoopbackServer { _, _ in .ok("through the proxy") }
        let manager = makeManager {
            $0.proxy = .url("http://127.0.0.1:\(proxy.port)")
            $0.addresses = Self.loopback()
        }
        for url in ["http://192.0.2.1/", "https://192.0.2.1/"] {
            let failure = failure(await get(url, manager))
            #expect(failure?.kind == .configuration)
            #expect(failure?.message.contains("allowsProxies") == true)
        }
        let stream = manager.stream(withHostName: "192.0.2.1", port: 80)
        await #expect {
            try await stream.write(Data("x".utf8))
        } throws: {
            $0.transferFailure?.kind == .configuration
        }
        #expect(proxy.connectionCount == 0)
        let direct = RequestOptions(proxy: ProxyPolicy.none)
        #expect(failure(await get("http://192.0.2.1/", manager, direct))?.kind == .addressNotAllowed)
    }

    @Test("a proxy that is allowed is connected to wherever it is, and the URL's port counts") func allowedProxies() async throws {
        let proxy = try LoopbackServer { _, _ in .ok("through the proxy") }
        let manager = makeManager {
            $0.proxy = .url("http://127.0.0.1:\(proxy.port)")
            $0.addresses = .publicOnly
            $0.addresses.allowsProxies = true
            $0.addresses.ports = [80, 443]
        }
        for _ in 0..<2 { #expect(await get("http://192.0.2.1/", manager).value == "through the proxy") }
        let failure = failure(await get("http://192.0.2.1:25/", manager))
        #expect(failure?.kind == .addressNotAllowed)
        #expect(failure?.message.contains("port 25 ") == true)
        #expect(proxy.requests.count == 2)
    }

    @Test("a proxy's exceptions are connected to directly, under the guard", arguments: ["127.0.0.1", "127.0.0.0/8", "*"])
    func exceptions(except: String) async throws {
        let proxy = try LoopbackServer { _, _ in .ok("through the proxy") }
        let server = try LoopbackServer { _, _ in .ok("direct") }
        let manager = makeManager { $0.proxy = .url("http://127.0.0.1:\(proxy.port)", except: [except]) }
        #expect(await get(server.url("/"), manager, RequestOptions(addresses: Self.loopback())).value == "direct")
        for allows in [false, true] {
            var policy = AddressPolicy.publicOnly
            policy.allowsProxies = allows
            #expect(failure(await get(server.url("/"), manager, RequestOptions(addresses: policy)))?.kind == .addressNotAllowed)
        }
        #expect(proxy.connectionCount == 0)
    }
}
