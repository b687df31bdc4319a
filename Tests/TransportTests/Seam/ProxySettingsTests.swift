// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct ProxySettingsTests {
    @Test(
        "environment variables by scheme",
        arguments: [
            ([:], false, nil), ([:], true, nil),
            (["http_proxy": "http://a:1"], false, "http://a:1"), (["http_proxy": "http://a:1"], true, nil),
            (["HTTP_PROXY": "http://a:1"], false, nil),  // in a CGI program, it holds the client's "Proxy" header field
            (["HTTPS_PROXY": "http://b:2"], true, "http://b:2"), (["https_proxy": "c:3", "HTTPS_PROXY": "b:2"], true, "c:3"),
            (["all_proxy": "socks5://d"], false, "socks5://d"), (["ALL_PROXY": "socks5://d"], true, "socks5://d"),
            (["all_proxy": "d", "http_proxy": "a"], false, "a"), (["http_proxy": "", "all_proxy": "d"], false, "d"),
        ] as [([String: String], Bool, String?)])
    func environment(variables: [String: String], isSecure: Bool, expected: String?) {
        #expect(ProxySettings(environment: variables).proxy(for: "http://host/", isSecure: isSecure, options: .standard)?.url == expected)
    }

    private static func proxy(
        _ url: String, _ policy: ProxyPolicy, environment: [String: String] = [:], _ change: (inout TransferOptions) -> Void = { _ in }
    ) -> String? {
        var options = TransferOptions()
        options.proxy = policy
        change(&options)
        return ProxySettings(environment: environment)
            .proxy(for: url, isSecure: url.hasPrefix("https"), options: PreparedOptions(options))?.url
    }

    @Test("the exceptions have the same source as the proxy")
    func exceptions() {
        let environment = ["http_proxy": "a", "https_proxy": "a", "NO_PROXY": "localhost .test"]
        func proxy(_ url: String, _ policy: ProxyPolicy) -> String? { Self.proxy(url, policy, environment: environment) }
        #expect(proxy("http://localhost/", .environment) == nil)
        #expect(proxy("http://x/", .environment) == "a")
        #expect(proxy("https://x/", .url("b", except: ["x", "y"])) == nil)
        #expect(proxy("https://localhost/", .url("b", except: ["x", "y"])) == "b")
        #expect(proxy("https://localhost/", .url("")) == nil)
        #expect(proxy("http://x/", .schemes(http: nil, https: "b")) == nil)
        #expect(proxy("http://x/", .none) == nil)
        #expect(Self.proxy("http://x/", .url("b")) { $0.unixSocketPath = "/s" } == nil)
    }

    /// Exceptions, hosts that they are for, and others.
    static let exceptionForms: [(exceptions: String, direct: [String], proxied: [String])] = [
        ("example.org", ["example.org", "EXAMPLE.org:8080", "a.b.example.org", "example.org."], ["xexample.org", "example.com"]),
        (".Example.org", ["example.org", "a.example.org"], ["xexample.org", "org"]),
        ("*.example.org", ["a.example.org", "a.b.example.org"], ["example.org", "xexample.org"]),
        ("localhost:8080", ["localhost:8080", "a.localhost:8080"], ["localhost", "localhost:80"]),
        ("*", ["example.org", "10.0.0.1", "[::1]"], []),
        ("a.test, *", ["example.org"], []),
        ("a.test,b.test c.test\t d.test,,", ["a.test", "b.test", "c.test", "d.test"], ["e.test"]),
        ("10.0.0.1", ["10.0.0.1", "10.0.0.1:81", "0x0a000001", "[::ffff:10.0.0.1]"], ["110.0.0.1", "10.0.0.10", "x.10.0.0.1.test"]),
        ("10.0.0.0/8", ["10.1.2.3", "10.255.255.255"], ["11.0.0.1", "a.10"]),
        ("169.254/16", ["169.254.0.1"], ["169.253.0.1", "169.255.0.1"]),
        ("[::1]", ["[::1]", "[0:0::1]:81"], ["[::2]", "127.0.0.1"]), ("::1", ["[::1]"], ["[::2]"]),
        ("[::1]:8080", ["[::1]:8080"], ["[::1]"]), ("fd00::/8", ["[fd12::1]"], ["[fe80::1]"]),
        ("b\u{FC}cher.test", ["xn--bcher-kva.test"], ["bucher.test"]), ("0.1", [], ["127.0.0.1", "0.0.0.1"]),
    ]

    @Test("forms of exceptions", arguments: exceptionForms) func forms(exceptions: String, direct: [String], proxied: [String]) {
        for (hosts, proxy) in [(direct, nil), (proxied, "p")] as [([String], String?)] {
            for host in hosts {
                // The two sources have the same forms.
                #expect(Self.proxy("http://\(host)/", .url("p", except: [exceptions])) == proxy, "\(host)")
                let environment = ["http_proxy": "p", "no_proxy": exceptions]
                #expect(Self.proxy("http://\(host)/", .environment, environment: environment) == proxy, "\(host)")
            }
        }
    }

    /// The forms that curl does not have, at least in some versions: in 8.23 spaces separate no names.
    private static let unknownToCurl: Set = [
        "*.example.org a.example.org", "*.example.org a.b.example.org", "localhost:8080 localhost:8080", "localhost:8080 a.localhost:8080",
        "a.test, * example.org", "10.0.0.1 [::ffff:10.0.0.1]", "169.254/16 169.254.0.1", "[::1] [::1]", "[::1] [0:0::1]:81",
        "[::1]:8080 [::1]:8080", "fd00::/8 [fd12::1]", "b\u{FC}cher.test xn--bcher-kva.test",
        "a.test,b.test c.test\t d.test,, c.test", "a.test,b.test c.test\t d.test,, d.test",
    ]

    @Test(
        "curl uses the proxy for the same hosts, but for forms that it does not have",
        .enabled(if: ChildProcess.path(of: "curl") != nil, "needs the program curl"), arguments: exceptionForms)
    func curl(exceptions: String, direct: [String], proxied: [String]) async throws {
        let server = try LoopbackServer { _, _ in .ok() }
        let environment = ["http_proxy": "http://127.0.0.1:\(server.port)", "no_proxy": exceptions, "LC_ALL": "C.UTF-8"]
        for (hosts, isDirect) in [(direct, true), (proxied, false)] {
            for host in hosts where !Self.unknownToCurl.contains("\(exceptions) \(host)") {
                let before = server.connectionCount
                // What needs no proxy fails to connect.
                let arguments = ["-sg", "--max-time", "20", "--connect-to", "::127.0.0.1:1", "http://\(host)/"]
                _ = await (try ChildProcess("curl", arguments, environment: environment)).finish()
                #expect((server.connectionCount == before) == isDirect, "\(exceptions) \(host)")
            }
        }
    }

    @Test(
        "an exception that matches no host is named",
        arguments: ["http://a.test", "a.test:0", "a.*", "*.10.0.0.1", "192.168.", "10.1", "10.0.0.0/33", "::1/129", "<local>", "a..b", "."])
    func unusable(exception: String) {
        var options = TransferOptions()
        options.proxy = .url("p", except: ["localhost", exception])
        #expect(PreparedOptions(options).invalidity?.contains("The exception \"\(exception)\" of `proxy`") == true)
        options.proxy = .environment
        #expect(PreparedOptions(options).invalidity == nil)
    }

    @Test("with limited addresses the environment's proxy is refused")
    func guarded() {
        func proxy(_ host: String) -> String? {
            Self.proxy(
                "http://\(host)/", .environment, environment: ["http_proxy": "http://u:p@a:1", "no_proxy": "localhost,10.0.0.0/8"]
            ) { $0.addresses = .publicOnly }
        }
        for host in ["localhost", "10.1.2.3"] { #expect(proxy(host) == nil) }
        #expect(proxy("example.org") == "http://u:p@a:1")
        let refusal = AddressPolicy.publicOnly
            .refusal(of: Proxy(url: "http://u:p@a:1"), for: "http://example.org/", policy: .environment)
        #expect(refusal?.kind == .configuration)
        #expect(refusal?.message.contains("of the environment") == true)
        #expect(refusal?.message.contains("u:p") == false)
    }
}
