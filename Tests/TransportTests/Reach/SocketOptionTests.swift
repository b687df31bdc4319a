// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct SocketOptionTests {
    private func options(_ change: (inout TransferOptions) -> Void) -> TransferOptions {
        var options = TransferOptions()
        options.proxy = .none
        change(&options)
        return options
    }

    /// Reads an option of the process's socket that is connected to a port.
    private func option(_ level: Int32, _ option: Int32, ofConnectionTo port: Int) -> Int? {
        for descriptor in Int32(0)..<1024 {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isPeer = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) == 0 }
            }
            guard isPeer, address.sin_family == sa_family_t(AF_INET), Int(UInt16(bigEndian: address.sin_port)) == port else { continue }
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            return getsockopt(descriptor, level, option, &value, &length) == 0 ? Int(value) : nil
        }
        return nil
    }

    #if os(Linux)
    @Test func `the options are set on the connection's socket`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let transport = CurlTransport()
        let options = options {
            $0.socket.keepAlive = .init(idle: .seconds(11), interval: .seconds(7), count: 3)
            $0.socket.sendBufferSize = 32_768
            $0.socket.receiveBufferSize = 65_536
            $0.socket.dscp = 46
            $0.socket.priority = 5
            $0.socket.sendsImmediately = false
            $0.socket.usesFastOpen = true
        }
        #expect(await transport.run(TransferRequest(url: server.url("/"), options: options)).body == Data("ok".utf8))
        let (tcp, ip) = (Int32(IPPROTO_TCP), Int32(IPPROTO_IP))
        #expect(option(SOL_SOCKET, SO_KEEPALIVE, ofConnectionTo: server.port) == 1)
        #expect(option(tcp, TCP_KEEPIDLE, ofConnectionTo: server.port) == 11)
        #expect(option(tcp, TCP_KEEPINTVL, ofConnectionTo: server.port) == 7)
        #expect(option(tcp, TCP_KEEPCNT, ofConnectionTo: server.port) == 3)
        // The system doubles them for its own needs (socket(7)).
        #expect(option(SOL_SOCKET, SO_SNDBUF, ofConnectionTo: server.port) == 65_536)
        #expect(option(SOL_SOCKET, SO_RCVBUF, ofConnectionTo: server.port) == 131_072)
        #expect(option(ip, IP_TOS, ofConnectionTo: server.port) == 46 << 2)
        #expect(option(SOL_SOCKET, SO_PRIORITY, ofConnectionTo: server.port) == 5)
        #expect(option(tcp, TCP_NODELAY, ofConnectionTo: server.port) == 0)
    }

    @Test func `an option that the socket rejects is named by the failure`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let end = await CurlTransport().run(
            TransferRequest(url: server.url("/"), options: options { $0.socket.priority = Int(Int32.min) }))
        // A process with CAP_NET_ADMIN may set any priority.
        guard end.error != nil else { return #expect(geteuid() == 0) }
        #expect(end.failure?.kind == .configuration)
        #expect(end.failure?.message.contains("SO_PRIORITY") == true)
        #expect(server.connectionCount == 0)
    }
    #endif

    @Test func `options that can't be valid fail`() async {
        let changes: [@Sendable (inout TransferOptions) -> Void] = [
            { $0.socket.dscp = 64 }, { $0.socket.sendBufferSize = 0 }, { $0.socket.keepAlive = .init(idle: .milliseconds(5)) },
            { $0.localPorts = 0...7 }, { $0.localPorts = 65_000...65_536 }, { $0.dohURL = "http://127.0.0.1/dns-query" },
        ]
        for change in changes {
            let end = await CurlTransport().run(TransferRequest(url: "http://127.0.0.1:1/", options: options(change)))
            #expect(end.failure?.kind == .configuration)
        }
    }

    @Test func `connections come from the given local ports`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        // Whether a port of the range is free depends on the machine, so take a wide one outside of the system's.
        let ports = 20_000...29_999
        let end = await CurlTransport().run(TransferRequest(url: server.url("/"), options: options { $0.localPorts = ports }))
        #expect(end.error == nil)
        #expect(end.completion?.metrics.localPort.map { ports.contains($0) } == true)
    }

    @Test func `a range of which every port is taken is a failure to connect`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let taken = try SilentListener(backlog: 1)
        let end = await CurlTransport().run(
            TransferRequest(url: server.url("/"), options: options { $0.localPorts = taken.port...taken.port }))
        #expect(end.failure?.kind == .connect)
        #expect(server.connectionCount == 0)
    }

    @Test func `the version of IP limits the addresses`() async throws {
        let server = try LoopbackServer { _, _ in .ok("ok") }
        let url = "http://service.invalid:\(server.port)/"
        let four = await CurlTransport().run(
            TransferRequest(
                url: url,
                options: options {
                    $0.resolve = ["*": ["::1", "127.0.0.1"]]
                    $0.ipVersion = .v4
                    $0.connectionAttemptDelay = .seconds(20)
                }))
        #expect(four.error == nil && four.completion?.metrics.remoteAddress == "127.0.0.1")
        let six = await CurlTransport().run(
            TransferRequest(
                url: url,
                options: options {
                    $0.resolve = ["*": ["127.0.0.1", "127.0.0.2"]]
                    $0.ipVersion = .v6
                }))
        #expect(six.failure != nil && server.connectionCount == 1)
    }
}
