// SPDX-License-Identifier: Apache-2.0

/// The servers started by `scripts/servers`, as named in its environment.
public enum Servers {
    /// The addresses of nginx, as URLs.
    public struct Nginx: Sendable {
        /// Without TLS.
        public let http: String
        /// TLS with HTTP/2 and HTTP/1.1.
        public let tls: String
        /// TLS with HTTP/1.1 only.
        public let tlsHTTP1: String
        /// The file of the authority that issued localhost's certificate.
        public let authorities: String
    }

    /// The proxies' addresses, as `host:port`.
    public struct Proxies: Sendable {
        /// For HTTP, without authentication.
        public let open: String
        /// Requires user "user" with password "passwd".
        public let authenticated: String
        /// Reached over TLS.
        public let secure: String
        /// For SOCKS, without authentication.
        public let socks: String
        /// Requires the same user.
        public let authenticatedSocks: String
    }

    /// Whether a missing server is a failure rather than a reason to skip the test.
    public static let areRequired = (try? variable("REQUIRED")) == "1"

    /// Whether tests of nginx are to be run.
    public static var hasNginx: Bool { areRequired || (try? nginx()) != nil }
    /// Whether tests of httpbin are to be run.
    public static var hasHttpbin: Bool { areRequired || (try? httpbin()) != nil }
    /// Whether tests of the proxies are to be run.
    public static var hasProxies: Bool { areRequired || (try? proxies()) != nil }

    /// The interpreter with the packages of `scripts/setup`, or the system's.
    public static var python: String { (try? variable("PYTHON")) ?? "python3" }

    /// Returns nginx's addresses.
    public static func nginx() throws -> Nginx {
        try Nginx(
            http: variable("NGINX_HTTP"), tls: variable("NGINX_TLS"), tlsHTTP1: variable("NGINX_TLS_H1"), authorities: variable("CA"))
    }

    /// Returns the URL of httpbin.
    public static func httpbin() throws -> String {
        try variable("HTTPBIN")
    }

    /// Returns the proxies' addresses.
    public static func proxies() throws -> Proxies {
        try Proxies(
            open: variable("PROXY"), authenticated: variable("PROXY_AUTH"), secure: variable("PROXY_TLS"), socks: variable("SOCKS"),
            authenticatedSocks: variable("SOCKS_AUTH"))
    }

    private static func variable(_ name: String) throws -> String {
        guard let value = ProcessInfo.processInfo.environment["CURLEW_TEST_\(name)"] else {
            throw TestError("CURLEW_TEST_\(name) is not set; run the tests with scripts/test")
        }
        return value
    }
}
