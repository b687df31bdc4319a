// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct CellularAccessTests {
    private struct Interfaces: InterfaceProvider {
        let list: [NetworkInterface]
        func routedInterfaces() -> [NetworkInterface] { list }

        /// The names; a star marks cellular interfaces.
        init(_ names: String) {
            list = names.split(separator: " ").map { name in
                NetworkInterface(name: String(name.drop { $0 == "*" }), isCellular: name.hasPrefix("*"))
            }
        }
    }

    private func transfer(
        _ url: String = "http://example.org/", over interfaces: String, allowed: Bool = false, bound: String? = nil
    ) throws -> TransferRequest {
        var configuration = SessionConfiguration()
        configuration.interfaces = Interfaces(interfaces)
        configuration.allowsCellularAccess = allowed
        configuration.interface = bound
        return try TransferRequest(
            url.asURL(), method: .get, headers: [:], body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
    }

    @Test(
        "another interface is chosen only if the system's is cellular",
        arguments: [("eth0 *wwan0", nil), ("*wwan0 eth0", "eth0"), ("*wwan0 *ppp0 wlan0 eth0", "wlan0"), ("eth0", nil), ("", nil)])
    func choice(_ interfaces: String, _ expected: String?) throws {
        #expect(try transfer(over: interfaces).options.interface == expected)
        #expect(try transfer(over: interfaces, allowed: true).options.interface == nil)
    }

    @Test(
        "a request fails if only cellular interfaces have a route",
        arguments: [("*wwan0", nil), ("eth0 *wwan0", "wwan0"), ("*wwan0 eth0", "192.0.2.7")])
    func refusal(_ interfaces: String, _ bound: String?) throws {
        let error = #expect(throws: CurlewError.self) { try transfer(over: interfaces, bound: bound) }
        #expect(error?.urlError?.code == .dataNotAllowed)
        #expect(error?.urlError?.code.rawValue == -1020)
    }

    @Test("loopback hosts are always allowed", arguments: ["http://localhost/", "http://127.0.0.1:80/", "http://[::1]/"])
    func loopback(_ url: String) throws {
        #expect(try transfer(url, over: "*wwan0").options.interface == nil)
    }

    @Test("a request may disallow cellular access that its session allows") func request() throws {
        var configuration = SessionConfiguration()
        configuration.interfaces = Interfaces("*wwan0")
        var request = try URLRequest(url: "http://example.org/", method: .get)
        #expect(
            try TransferRequest(request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
                .allowsCellularAccess)
        request.allowsCellularAccess = false
        #expect(throws: CurlewError.self) {
            try TransferRequest(request, given: nil, body: nil, in: Session(configuration: configuration, delegate: SessionDelegate()))
        }
    }

    @Test(
        "a raw connection avoids cellular interfaces if its session or its request says so",
        arguments: [("example.org", "*wwan0 eth0", "eth0"), ("192.0.2.7", "eth0 *wwan0", nil), ("::1", "*wwan0", nil)])
    func connection(_ host: String, _ interfaces: String, _ expected: String?) throws {
        for (sessionAllows, requestAllows) in [(false, true), (true, false), (false, false), (true, true)] {
            var configuration = SessionConfiguration()
            configuration.interfaces = Interfaces(interfaces)
            configuration.allowsCellularAccess = sessionAllows
            let stream = Streamable(host: host, port: 7, isSecure: false, allowsCellularAccess: requestAllows)
            let session = Session(configuration: configuration, delegate: SessionDelegate())
            guard case .stream(let request) = try stream.validated().work(in: session, adapted: nil) else {
                Issue.record("not a connection")
                continue
            }
            #expect(request.options.interface == (sessionAllows && requestAllows ? nil : expected))
        }
    }

    @Test("the request fails without being sent") func response() async throws {
        let mock = MockTransport.answering()
        let manager = SessionManager(mock: mock) {
            $0.interfaces = Interfaces("*wwan0")
            $0.allowsCellularAccess = false
        }
        let error = await manager.request("http://example.org/").serializingData().response.error
        #expect((error as? CurlewError)?.urlError?.code == .dataNotAllowed)
        #expect(mock.started.count == 0)
    }

    @Test("routes are read from /proc/net, ordered by metric") func tables() throws {
        let directory = try TemporaryDirectory()
        try directory.write(
            Data(
                """
                Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
                eth0\t00000000\t010011AC\t0003\t0\t0\t600\t00000000\t0\t0\t0
                wwan0\t00000000\t010011AC\t0003\t0\t0\t50\t00000000\t0\t0\t0
                tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
                down0\t00000000\t00000000\t0002\t0\t0\t0\t00000000\t0\t0\t0
                """.utf8), to: "route")
        let zero = String(repeating: "0", count: 32)
        try directory.write(
            Data(
                """
                \(zero) 00 \(zero) 00 fe80\(zero.dropFirst(4)) 00000400 00000001 00000000 00000003 wlan0
                \(zero) 00 \(zero) 00 \(zero) ffffffff 00000001 00000000 00200200 lo
                fe80\(zero.dropFirst(4)) 40 \(zero) 00 \(zero) 00000100 00000001 00000000 00000001 eth1
                """.utf8), to: "ipv6_route")
        #expect(SystemInterfaces(directory: directory.url.path).routedInterfaces() == Interfaces("*wwan0 eth0 wlan0").list)
        #expect(SystemInterfaces(directory: directory.url.path + "/none").routedInterfaces() == [])
    }
}
