// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The proxy of a transfer in libcurl's terms.
struct Proxy: Equatable {
    let url: String

    /// Whether the connection to the proxy itself uses TLS.
    var isSecure: Bool { url.prefix(8).equalsIgnoringASCIICase("https://") }

    /// Whether it passes bytes on, and does not read requests.
    var isSOCKS: Bool { url.prefix(5).equalsIgnoringASCIICase("socks") }
}

/// The proxies of the environment. A class, as each transfer asks for them: its strings would be copied.
final class ProxySettings: Sendable {
    /// Read once, so that connections and partitions agree, of all sessions and loops: sessions may share a cache.
    static let ofProcess = ProxySettings(environment: ProcessInfo.processInfo.environment)

    private let http: String?
    private let https: String?
    private let noProxy: String
    private let exceptions: ProxyExceptions

    init(environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let all = value("all_proxy", "ALL_PROXY")
        // HTTP_PROXY is not read, because in a CGI program it holds the client's "Proxy" header field.
        http = value("http_proxy") ?? all
        https = value("https_proxy", "HTTPS_PROXY") ?? all
        noProxy = value("no_proxy", "NO_PROXY") ?? ""
        exceptions = ProxyExceptions([noProxy])
    }

    /// The proxy that a transfer uses; `nil` for none.
    ///
    /// The only place that decides it: libcurl's rules for exceptions differ from version to version.
    func proxy(for url: String, isSecure: Bool, options: PreparedOptions) -> Proxy? {
        guard options.options.mayUseProxy, let (proxy, _) = candidate(isSecure: isSecure, policy: options.options.proxy), !proxy.isEmpty
        else { return nil }
        let exceptions = if case .environment = options.options.proxy { self.exceptions } else { options.proxyExceptions }
        if let target = RouteTarget(url: url), exceptions.contains(target) { return nil }
        return Proxy(url: proxy)
    }

    /// The proxy for a URL's scheme, and the hosts that are reached without it, as they were given; `nil` for none.
    func candidate(isSecure: Bool, policy: ProxyPolicy) -> (url: String, exceptions: [String])? {
        switch policy {
        case .none: nil
        case .url(let url, let except): (url, except)
        case .schemes(let http, let https, let except): (isSecure ? https : http).map { ($0, except) }
        case .environment: (isSecure ? https : http).map { ($0, [noProxy]) }
        }
    }
}

// MARK: - CustomReflectable

extension Proxy: CustomReflectable {
    /// The equivalent policy, whose description redacts user name and password.
    var customMirror: Mirror { .redacted(self, ["policy": ProxyPolicy.url(url)]) }
}

extension ProxySettings: CustomReflectable {
    /// Redacted as for ``Proxy``.
    var customMirror: Mirror {
        .redacted(self, ["policy": ProxyPolicy.schemes(http: http, https: https, except: [noProxy])])
    }
}

extension TransferRequest {
    /// Whether the request is sent through a proxy: the given one, or one of the process's environment.
    package var usesProxy: Bool { ProxySettings.ofProcess.proxy(for: url, isSecure: isSecure, options: prepared) != nil }
}

extension TransferOptions {
    /// The host to which a transfer of a URL connects: that of the proxy or of the URL; `nil` for a Unix domain socket, and for a URL that
    /// has no valid host.
    package func connectedHost(for url: String) -> String? {
        guard reachBox?.value.routing.unixSocket == nil else { return nil }
        let isSecure = url.prefix(6).equalsIgnoringASCIICase("https:")
        let proxy = ProxySettings.ofProcess.proxy(for: url, isSecure: isSecure, options: PreparedOptions(self))
        guard let proxy else { return RouteTarget(url: url)?.host }
        return URL(string: proxy.url.containsScalars(of: "://") ? proxy.url : "http://\(proxy.url)")?.host
    }

    /// Whether a proxy is asked at all: not over a Unix domain socket, nor for HTTP/3 only.
    var mayUseProxy: Bool { reachBox?.value.routing.unixSocket == nil && httpVersion != .http3Only }
}
