// SPDX-License-Identifier: Apache-2.0
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
        #expect(ProxySettings(environment: variables).proxy(isSecure: isSecure, policy: .environment)?.url == expected)
    }

    @Test("the exceptions have the same source as the proxy")
    func exceptions() {
        let settings = ProxySettings(environment: ["http_proxy": "a", "NO_PROXY": "localhost,.test"])
        #expect(settings.proxy(isSecure: false, policy: .environment) == Proxy(url: "a", exceptions: "localhost,.test"))
        #expect(settings.proxy(isSecure: true, policy: .url("b", except: ["x", "y"])) == Proxy(url: "b", exceptions: "x,y"))
        #expect(settings.proxy(isSecure: true, policy: .url("b")) == Proxy(url: "b", exceptions: ""))
        #expect(settings.proxy(isSecure: false, policy: .none) == nil)
    }

    @Test("with limited addresses it is decided here which hosts are exceptions, and the environment's proxy is refused")
    func guarded() {
        let settings = ProxySettings(environment: ["http_proxy": "http://u:p@a:1", "no_proxy": "localhost,.test,10.0.0.0/8,0.1"])
        var options = TransferOptions()
        options.addresses = .publicOnly
        func proxy(_ host: String) -> Proxy? { settings.proxy(for: "http://\(host)/", isSecure: false, options: options) }
        for host in ["localhost", "a.test", "10.1.2.3"] { #expect(proxy(host) == nil) }
        // A suffix of an address is no exception.
        for host in ["example.org", "127.0.0.1"] { #expect(proxy(host) == Proxy(url: "http://u:p@a:1", exceptions: "")) }
        let proxy = Proxy(url: "http://u:p@a:1", exceptions: "")
        let refusal = options.addresses.refusal(of: proxy, for: "http://example.org/", policy: .environment)
        #expect(refusal?.kind == .configuration)
        #expect(refusal?.message.contains("of the environment") == true)
        #expect(refusal?.message.contains("u:p") == false)
    }
}
