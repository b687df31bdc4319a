// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The proxy of a transfer in libcurl's terms.
struct Proxy: Equatable {
    let url: String
    /// Hosts that are reached directly, in the form in which hosts are compared, separated by commas.
    let exceptions: String

    /// - Parameter exceptions: the names of hosts as given, separated by commas or spaces.
    init(url: String, exceptions: String) {
        self.url = url
        self.exceptions = exceptions.isEmpty ? exceptions : Self.normalized(exceptions)
    }

    /// libcurl compares the names with the host to which it connects, and converts none of them.
    private static func normalized(_ names: String) -> String {
        names.utf8.split { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") }.map { name in
            let hasDot = name.first == UInt8(ascii: ".")
            return (hasDot ? "." : "") + String(Substring(hasDot ? name.dropFirst() : name)).comparableHost
        }.joined(separator: ",")
    }

    /// Whether the connection to the proxy itself uses TLS.
    var isSecure: Bool { url.prefix(8).equalsIgnoringASCIICase("https://") }
}

/// The proxies of the environment, read once for a session.
struct ProxySettings {
    private let http: String?
    private let https: String?
    private let exceptions: String

    init(environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let all = value("all_proxy", "ALL_PROXY")
        // HTTP_PROXY is not read, because in a CGI program it holds the client's "Proxy" header field.
        http = value("http_proxy") ?? all
        https = value("https_proxy", "HTTPS_PROXY") ?? all
        exceptions = value("no_proxy", "NO_PROXY") ?? ""
    }

    /// The proxy of a transfer; `nil` for none, as over a Unix domain socket, and for HTTP/3 only.
    func proxy(for url: String, isSecure: Bool, options: TransferOptions) -> Proxy? {
        guard options.reachBox?.value.routing.unixSocket == nil, options.httpVersion != .http3Only else { return nil }
        let proxy = proxy(isSecure: isSecure, policy: options.proxy)
        guard options.addresses.isLimited, let proxy else { return proxy }
        // Decided here and not by libcurl, because what is checked depends on it.
        guard !proxy.url.isEmpty, RouteTarget(url: url).map({ proxy.applies(to: $0.host) }) ?? true else { return nil }
        return Proxy(url: proxy.url, exceptions: "")
    }

    /// The proxy for a URL's scheme; `nil` for none.
    func proxy(isSecure: Bool, policy: ProxyPolicy) -> Proxy? {
        switch policy {
        case .none: nil
        case .url(let url, let except): Proxy(url: url, exceptions: except.joined(separator: ","))
        case .schemes(let http, let https, let except):
            (isSecure ? https : http).map { Proxy(url: $0, exceptions: except.joined(separator: ",")) }
        case .environment: (isSecure ? https : http).map { Proxy(url: $0, exceptions: exceptions) }
        }
    }
}

// MARK: - CustomReflectable

extension Proxy: CustomReflectable {
    /// The equivalent policy, whose description redacts user name and password.
    var customMirror: Mirror { .redacted(self, ["policy": ProxyPolicy.url(url, except: [exceptions])]) }
}

extension ProxySettings: CustomReflectable {
    /// Redacted as for ``Proxy``.
    var customMirror: Mirror {
        .redacted(self, ["policy": ProxyPolicy.schemes(http: http, https: https, except: [exceptions])])
    }
}
