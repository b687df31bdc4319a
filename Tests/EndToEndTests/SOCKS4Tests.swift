// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewSessionTestSupport
import CurlewTestSupport
import Testing

/// SOCKS4a, which none of the proxies of `scripts/servers` supports.
@Suite(.timeLimit(.minutes(1))) struct SOCKS4Tests {
    @Test(
        "names are sent to a SOCKS4a proxy unresolved, and to a SOCKS4 proxy resolved",
        arguments: [("socks4a", "localhost"), ("socks4", "127.0.0.1")])
    func names(scheme: String, asked: String) async throws {
        let (server, proxy) = (try LoopbackServer.standard(), try SOCKS4Server())
        let manager = makeManager { $0.proxy = .url("\(scheme)://127.0.0.1:\(proxy.port)") }
        let url = server.url("/bytes/100000").replacing("127.0.0.1", with: "localhost")
        #expect(try await manager.request(url).validate().serializingData().value == GeneratedBody().data(count: 100_000))
        #expect(proxy.hosts == [asked])
    }

    @Test("a host the proxy cannot reach is reported as the proxy's error, and nothing was sent") func unreachable() async throws {
        let (refusing, proxy) = (try StuckListener(.refusing), try SOCKS4Server())
        let manager = makeManager { $0.proxy = .url("socks4a://127.0.0.1:\(proxy.port)") }
        let failure = await manager.request("http://nowhere.test:\(refusing.port)/").serializingData().response.error?.transferFailure
        #expect(failure?.kind == .proxy)
        #expect(failure?.requestWasSent == false)
        #expect(proxy.hosts == ["nowhere.test"])
    }
}
