// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import Testing

@testable import CurlewCore
@testable import CurlewTransport

/// Whatever is kept for a host is found by every spelling of it, in the key and in the URL, and by no other host.
@Suite(.timeLimit(.minutes(1))) struct HostSpellingTests {
    /// Spellings of one host each, as in a key; those of other hosts are not equal.
    private static let usual: [[String]] = [
        ["example.org", "EXAMPLE.org", "example.org.", "ex%61mple.org"],
        ["xn--bcher-kva.example", "b\u{FC}cher.example", "B\u{DC}CHER.example.", "b%C3%BCcher.example", "b\u{FC}cher\u{3002}example"],
        ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "%31%32%37.1", "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]"],
        ["\u{FF11}\u{FF10}\u{FF0E}1", "10.0.0.1"],
        ["[2001:db8::a]", "[2001:DB8:0:0:0:0:0:A]", "[2001:db8::0.0.0.10]", "[2001:db8::a%25eth0]"],
        ["[fe80::1%25eth0]", "[FE80:0::1%25eth0]"], ["[fe80::1%25eth1]"], ["[fe80::1]"],
    ]

    private static let hosts = usual + loopback

    /// A zone by the interface's name and by its number.
    private static var loopback: [[String]] {
        ["lo", "lo0"].compactMap { (name: String) -> [String]? in
            let index = if_nametoindex(name)
            return index > 0 ? ["[fe80::1%25\(name)]", "[fe80::1%25\(index)]"] : nil
        }
    }

    /// Whether what is kept for a key applies to a URL; `nil` where the key is refused.
    private static var features: [(name: String, applies: (_ key: String, _ host: String) throws -> Bool?)] {
        [
            (
                "trust policy",
                { key, host in
                    let manager = ServerTrustPolicyManager(policies: [key: .disableEvaluation])
                    guard manager.unusableKeys.isEmpty, let origin = HTTPOrigin(url: "https://\(host)/") else { return nil }
                    return manager.serverTrustPolicy(forHost: origin.host) != nil
                }
            ),
            ("resolve", { key, host in try route([key: 1], "http://\(host)/") }),
            ("connectTo with a port", { key, host in try route(["\(key):8080": 1], "http://\(host):8080/") }),
            (
                "proxy exception",
                { key, host in
                    let exceptions = ProxyExceptions([key])
                    // An exception of an address is one of that address in all zones.
                    guard key.lowercased().hasPrefix("[fe80") == false else { return nil }
                    return exceptions.unusable == nil ? exceptions.contains(try #require(RouteTarget(url: "http://\(host)/"))) : nil
                }
            ),
            (
                "cookie",
                { key, host in
                    let store = CookieStore.memory
                    guard let url = try? "http://\(host)/".asURL(), (try? store.set(Cookie(name: "a", value: "b", domain: key))) != nil
                    else { return nil }
                    return try !store.cookies(for: url).isEmpty
                }
            ),
            (
                "HSTS",
                { key, host in
                    let store = HSTSStore.memory
                    try store.set(HSTSHost(host: key, expirationDate: .distantFuture))
                    guard let url = try? "http://\(host)/".asURL(), try !store.hosts().isEmpty else { return nil }
                    return try store.upgradedURL(of: url) != nil
                }
            ),
            (
                "credential",
                { key, host in
                    let storage = URLCredentialStorage()
                    func space(_ host: String) -> URLProtectionSpace {
                        URLProtectionSpace(
                            host: host, port: 80, protocol: "http", realm: "r", authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
                    }
                    storage.setDefaultCredential(URLCredential(user: "u", password: "p", persistence: .forSession), for: space(key))
                    return storage.credential(forAnyOf: [space(try #require(HTTPOrigin(url: "http://\(host)/")).host)]) != nil
                }
            ),
            ("origin", { key, host in HTTPOrigin(scheme: "http", host: key, port: 80) == HTTPOrigin(url: "HTTP://u@\(host):80?") }),
            (
                "limit of connections",
                { key, host in Transfer.hostKey(of: "http://\(key):80/a") == Transfer.hostKey(of: "HTTP://u@\(host)?") }
            ),
        ]
    }

    private static func route(_ entries: [String: Int], _ url: String) throws -> Bool? {
        let table = RouteTable(entries)
        return table.unusableKey == nil ? try #require(RouteTarget(url: url)).entry(in: table) != nil : nil
    }

    @Test("each feature applies to all spellings of a host, and to no other", arguments: features.map { $0.name })
    func table(_ name: String) throws {
        let feature = try #require(Self.features.first { $0.name == name })
        var count = 0
        for (index, spellings) in Self.hosts.enumerated() {
            for key in spellings {
                for (other, hosts) in Self.hosts.enumerated() {
                    for host in hosts {
                        // A key that is refused keeps nothing for any host.
                        guard let applies = try feature.applies(key, host) else { continue }
                        count += 1
                        #expect(applies == (index == other), "\(key) \(host)")
                    }
                }
            }
        }
        #expect(count > 100)
    }

    @Test("an address with the dot of the root is no host, and no spelling of the address", arguments: ["127.0.0.1.", "127.1.", "0x7f.1."])
    func root(_ host: String) throws {
        #expect(ServerTrustPolicyManager(policies: [host: .disableEvaluation]).unusableKeys == [host])
        #expect(ServerTrustPolicyManager(policies: ["127.0.0.1": .disableEvaluation]).serverTrustPolicy(forHost: host) == nil)
        #expect(RouteTable([host: 1]).unusableKey == host)
        #expect(RouteTarget(host: "example.org", port: 80).moved(to: "\(host):81") == nil)
        #expect(ProxyExceptions([host]).unusable == host)
        #expect(!ProxyExceptions(["127.0.0.0/8"]).contains(try #require(RouteTarget(url: "http://\(host)/"))))
        #expect(throws: CurlewError.self) { try HSTSStore.memory.set(HSTSHost(host: host, expirationDate: .distantFuture)) }
        #expect(throws: CurlewError.self) { try Streamable(host: host, port: 80, isSecure: false).validated() }
        let store = CookieStore.memory
        try? store.set(Cookie(name: "a", value: "b", domain: host))
        #expect(try store.cookies(for: "http://127.0.0.1/".asURL()).isEmpty)
    }

    @Test("scheme and port are part of the key of the limit of connections") func limits() {
        let urls = ["http://h/", "https://h/", "http://h:81/", "http://g/", "http://h:443/"]
        #expect(Set(urls.map { Transfer.hostKey(of: $0) }).count == urls.count)
    }
}
