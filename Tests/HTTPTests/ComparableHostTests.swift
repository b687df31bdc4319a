// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

/// The form in which hosts are compared.
@Suite(.timeLimit(.minutes(1))) struct ComparableHostTests {
    /// Spellings of one host each, the first of which is the normal form.
    private static let hosts: [[String]] = [
        ["example.org", "EXAMPLE.org", "example.org.", "ex%61mple.org", "ExAmPlE.oRg."],
        [
            "xn--bcher-kva.example", "b\u{FC}cher.example", "B\u{DC}CHER.example", "b%C3%BCcher.example", "XN--bcher-KVA.example.",
            "bu\u{308}cher.example", "b\u{FC}cher\u{3002}example",
        ],
        ["xn--fa-hia.de", "fa\u{DF}.de"],
        ["fass.de", "FASS.DE"],
        [
            "127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7F000001", "2130706433", "017700000001", "0177.0.0.01", "0x7f.0x0.1",
            "%31%32%37.1",
        ],
        ["0.0.0.0", "0", "0x0", "00.0"],
        ["255.255.255.255", "4294967295", "0xffffffff", "255.16777215"],
        ["1.2.3.4", "1.2.772", "1.131844"],
        ["::1", "[::1]", "0:0:0:0:0:0:0:1", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "::0.0.0.1"],
        ["2001:db8::a", "2001:DB8:0:0::A", "[2001:0db8::000a]", "[2001:db8::a%25x]", "2001:db8::a%1"],
        ["ff02::1%eth0"], ["ff02::1", "[ff02:0::1]"], ["ff05::1", "ff05::1%eth0"],
        ["10.1.2.3", "::ffff:10.1.2.3", "[::FFFF:a01:203]", "[0:0:0:0:0:ffff:0a01:0203%25eth0]"],
        ["fe80::1%eth0", "[fe80::1%25eth0]", "[FE80::1%eth0]", "fe80:0::1%25eth0"],
        ["fe80::1%ETH0"], ["fe80::1"],
        // No IPv4 addresses, but names.
        ["256.0.0.1"], ["1.2.3.4.5"], ["127.0.0.08"], ["4294967296"], ["1.16777216"], ["0x"], ["0xg.1"], ["127.0.0.1a"], ["1.2.3.256"],
        ["127.+1"], ["127.-1"], ["a_b.example"], ["a.0.0.1b"], ["localhost"], ["org"], ["sub.example.org"],
        // No hosts: each equals only itself.
        [""], ["."], ["example..org"], [".example.org"], ["example.org.."], ["https://example.org"], ["example.org:443"], ["example.org/"],
        ["[::1"], ["::1]"], ["[::1]:443"], ["a\0.example.org"], ["::1\0"], ["1.1\0"], ["example.org\u{301}/"], ["[::1]\u{301}"],
        ["127.0.0.1."], ["127.1."], ["0x7f.1."], ["2130706433."], ["[::1]."], ["::1."],
        ["fe80::1%"], ["fe80::1%a/b"], ["1::2::3"], [":"], ["[]"], ["*.example.org"],
    ]

    @Test("spellings of one host are equal, those of different hosts differ") func table() {
        for (index, spellings) in Self.hosts.enumerated() {
            for spelling in spellings {
                #expect(spelling.comparableHost == spellings[0], "\(spelling.debugDescription)")
                for other in Self.hosts[(index + 1)...].joined() {
                    #expect(spelling.comparableHost != other.comparableHost, "\(spelling.debugDescription) \(other.debugDescription)")
                }
            }
        }
    }

    @Test("the normal form is its own, and that of all capitals, of escapes, and of a name with a trailing dot") func isStable() {
        for name in Self.hosts.map({ $0[0] }) where URLHost.comparable(ifValid: name) != nil {
            #expect(name.comparableHost == name)
            guard !name.utf8.contains(UInt8(ascii: ":")) else { continue }
            let escaped = name.utf8.map { "%" + String($0, radix: 16, uppercase: true) }.joined()
            var bytes = in_addr()
            let dotted = inet_pton(AF_INET, name, &bytes) == 1 ? [] : [name + ".", name.uppercased() + "."]
            for spelling in [name.uppercased(), escaped] + dotted {
                #expect(spelling.comparableHost == name, "\(spelling)")
                #expect(HTTPOrigin(url: "HTTPS://user@\(spelling)/") == HTTPOrigin(url: "https://\(name):443"), "\(spelling)")
            }
        }
    }

    @Test("a zone is the interface's name, also where it is given by number") func zones() throws {
        let interfaces = try #require(if_nameindex())
        defer { if_freenameindex(interfaces) }
        let (index, name) = (interfaces[0].if_index, String(cString: interfaces[0].if_name))
        for zone in [name, "25\(name)", "\(index)", "25\(index)", "00\(index)"] {
            #expect("fe80::1%\(zone)".comparableHost == "fe80::1%\(name)", "\(zone)")
            #expect("[FE80:0::1%\(zone)]".comparableHost == "fe80::1%\(name)", "\(zone)")
        }
        #expect(HTTPOrigin(url: "https://[fe80::1%25\(index)]/") == HTTPOrigin(url: "https://[fe80::1%25\(name)]/"))
        // Zone 0 is none, and what names no interface stays.
        for (host, normal) in [
            ("fe80::1%0", "fe80::1"), ("fe80::1%04000000000", "fe80::1%4000000000"), ("fe80::1%4294967295", "fe80::1%4294967295"),
            ("fe80::1%-1", "fe80::1%-1"), ("fe80::1%no-such", "fe80::1%no-such"), ("fe80::1%2525x", "fe80::1%2525x"),
        ] {
            #expect(host.comparableHost == normal)
            #expect(normal.comparableHost == normal)
        }
    }

    @Test("every notation of an IPv4 address is the one of four decimal numbers") func notations() {
        var state: UInt64 = 38
        for _ in 0..<2000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let address = UInt32(truncatingIfNeeded: state >> 32)
            let bytes = [24, 16, 8, 0].map { UInt32(UInt8(truncatingIfNeeded: address >> $0)) }
            func text(_ value: UInt32, _ radix: UInt64) -> String {
                switch radix % 3 {
                case 0: String(value)
                case 1: "0x" + String(value, radix: 16)
                default: "0" + String(value, radix: 8)
                }
            }
            let normal = bytes.map(String.init).joined(separator: ".")
            let last = [address, address & 0xFF_FFFF, address & 0xFFFF, address & 0xFF]
            for count in 0..<4 {
                let parts =
                    bytes.prefix(count).enumerated().map { text($0.element, state >> UInt64($0.offset)) } + [text(last[count], state >> 7)]
                #expect(parts.joined(separator: ".").comparableHost == normal)
            }
        }
    }

    @Test("the host of a URL is taken from its text")
    func ofURL() throws {
        for (url, host) in [
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"), ("https://b\u{FC}cher.example/", "xn--bcher-kva.example"),
            ("http://u:p@127.1:80/x@y", "127.0.0.1"), ("http://[0::1]:80/", "::1"), ("HTTP://EX.org.?a", "ex.org"),
        ] {
            #expect(try #require(URL(string: url)).comparableHost == host)
        }
        #expect(URL(string: "/path")?.comparableHost == nil)
        #expect(HTTPOrigin(scheme: "HTTPS", host: "127.1", port: 1) == HTTPOrigin(url: "https://127.0.0.1:1"))
    }
}
