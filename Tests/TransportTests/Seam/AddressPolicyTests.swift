// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct AddressPolicyTests {
    @Test(
        "addresses that the Internet does not route are not globally reachable",
        arguments: [
            ("8.8.8.8", true), ("1.1.1.1", true), ("172.15.255.255", true), ("172.32.0.0", true), ("100.128.0.1", true),
            ("223.255.255.255", true), ("127.0.0.1", false), ("127.255.255.254", false), ("0.0.0.0", false), ("10.1.2.3", false),
            ("172.16.0.1", false), ("172.31.255.255", false), ("192.168.1.1", false), ("169.254.169.254", false),
            ("100.100.100.200", false), ("168.63.129.16", false), ("192.0.0.192", false), ("224.0.0.1", false),
            ("255.255.255.255", false), ("198.18.0.1", false), ("2606:4700::1111", true), ("2001:200::1", true), ("::1", false),
            ("::", false), ("fd00:ec2::254", false), ("fe80::1%eth0", false), ("ff02::1", false), ("2001:db8::1", false),
            ("::ffff:8.8.8.8", true), ("::ffff:127.0.0.1", false), ("::ffff:a9fe:a9fe", false), ("64:ff9b::8.8.8.8", true),
            ("64:ff9b::10.0.0.1", false), ("64:ff9b:1::8.8.8.8", false), ("2002:808:808::1", true), ("2002:7f00:1::1", false),
            ("2001::1", false), ("::127.0.0.1", false),
        ])
    func reachable(_ text: String, _ isReachable: Bool) throws {
        let address = try #require(NetworkAddress(text))
        #expect(address.isGloballyReachable == isReachable)
        #expect(AddressPolicy.publicOnly.allows(address) == isReachable)
        #expect(AddressPolicy.any.allows(address))
    }

    @Test(
        "a range contains the addresses with its prefix",
        arguments: [
            ("10.1.0.0/16", "10.1.255.255", true), ("10.1.0.0/16", "10.2.0.0", false), ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false), ("10.1.2.3/31", "10.1.2.2", true), ("0.0.0.0/0", "9.9.9.9", true),
            ("0.0.0.0/0", "2606:4700::1", false), ("::/0", "::1", true), ("::/0", "9.9.9.9", true), ("fd12::/16", "fd12:1::1", true),
            ("fd12::/16", "fd13::1", false), ("fd00::/8", "fdff::1", true), ("2001:db8::/65", "2001:db8::7fff:0:0:1", true),
            ("2001:db8::/65", "2001:db8::8000:0:0:1", false), ("::1/128", "::1", true), ("::1/128", "::2", false),
            ("2001:db8::/64", "2001:db8::ffff:ffff:ffff:ffff", true), ("2001:db8::/64", "2001:db8:0:1::", false),
        ])
    func ranges(_ range: String, _ address: String, _ isInside: Bool) throws {
        let range = try #require(AddressRange(range))
        #expect(range.contains(try #require(NetworkAddress(address))) == isInside)
    }

    @Test(
        "text that is neither an address nor a prefix is not a range",
        arguments: [
            "", "/", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/", "10.0.0.0/8/8", "::1/129", "host", "1.2.3.4 ",
        ])
    func noRanges(_ text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test("an address has its usual textual form", arguments: [("10.1.2.3", "10.1.2.3"), ("fd00:ec2::254", "fd00:ec2:0:0:0:0:0:254")])
    func descriptions(_ text: String, _ description: String) throws {
        #expect(try #require(NetworkAddress(text)).description == description)
    }

    @Test(
        "nothing is sent to an address that is not allowed, however it is written", arguments: ["127.0.0.1", "localhost", "[::1]", "127.1"])
    func refused(host: String) async throws {
        let server = try LoopbackServer { _, _ in .ok("secret") }
        let url = server.url("/").replacing("127.0.0.1", with: host)
        var options = TransferOptions()
        options.addresses = .publicOnly
        let transport = CurlTransport()
        let end = await transport.run(TransferRequest(url: url, options: options))
        #expect(end.failure?.kind == .addressNotAllowed)
        #expect(end.failure?.requestWasSent == false)
        #expect(server.connectionCount == 0)
    }

    @Test("an address on the list is allowed; pooled connections are checked like new ones")
    func allowed() async throws {
        let server = try LoopbackServer { _, _ in .ok("fine") }
        let transport = CurlTransport()
        var options = TransferOptions()
        options.addresses = .publicOnly(except: [try #require(AddressRange("127.0.0.0/8"))])
        #expect(await transport.run(TransferRequest(url: server.url("/"), options: options)).body == Data("fine".utf8))
        options.addresses = .publicOnly
        let refused = await transport.run(TransferRequest(url: server.url("/"), options: options))
        #expect(refused.failure?.kind == .addressNotAllowed)
        options.addresses = .any
        #expect(await transport.run(TransferRequest(url: server.url("/"), options: options)).body == Data("fine".utf8))
        #expect(server.requests.count == 2)
    }

    @Test("the policy applies to raw streams")
    func streams() async throws {
        let server = try TCPEchoServer()
        let transport = CurlTransport()
        let observer = RecordingStreamObserver()
        var options = TransferOptions()
        options.addresses = .publicOnly
        transport.openStream(
            StreamTransferRequest(host: "localhost", port: server.port, isSecure: false, options: options), observer: observer)
        #expect(await observer.end().failure?.kind == .addressNotAllowed)
    }
}
