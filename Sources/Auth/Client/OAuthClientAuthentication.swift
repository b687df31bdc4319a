// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
public import CurlewSigning

/// How a client authenticates to its authorization server (RFC 6749, section 2.3). No description shows a secret.
public struct OAuthClientAuthentication: Sendable {
    enum Method: Sendable {
        case none
        case basic(String)
        case body(String)
        case assertion(SigningKey)
        case certificate
    }

    let method: Method

    /// A public client, such as a program on a user's computer, which has no secret: it only names itself.
    public static let none = OAuthClientAuthentication(method: .none)

    /// A secret, sent as the password of HTTP's Basic scheme, which every server has to support (`client_secret_basic`).
    public static func secret(_ secret: String) -> OAuthClientAuthentication { OAuthClientAuthentication(method: .basic(secret)) }

    /// A secret, sent in the form (`client_secret_post`): only for servers that do not support the Basic scheme.
    public static func secretInBody(_ secret: String) -> OAuthClientAuthentication { OAuthClientAuthentication(method: .body(secret)) }

    /// A key, which signs an assertion for each request (RFC 7523, section 2.2): `private_key_jwt`, or `client_secret_jwt` for a secret.
    ///
    /// The server knows the public key by ``SigningKey/id``. Without libcrypto 3, requests fail with ``SigningKeyError``.
    public static func key(_ key: SigningKey) -> OAuthClientAuthentication { OAuthClientAuthentication(method: .assertion(key)) }

    /// The client certificate of the session's configuration (RFC 8705): at the endpoints that the server has for it, if it has some.
    public static let certificate = OAuthClientAuthentication(method: .certificate)

    /// Whether the client's certificate is presented.
    var hasCertificate: Bool { if case .certificate = method { true } else { false } }

    /// Adds what authenticates a client to a request.
    ///
    /// - Parameter audience: for which an assertion is.
    func authenticate(_ id: String, to audience: String, _ headers: inout HTTPHeaders, _ form: inout OAuthForm) throws {
        switch method {
        case .none, .certificate: form["client_id"] = id
        case .assertion(let key):
            form["client_id"] = id
            form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            form["client_assertion"] = try JSONWebToken.assertion(issuer: id, subject: id, audience: audience, by: key)
        case .basic(let secret):
            // Encoded as in a form, so that a colon in the identifier is none.
            let user = PercentEncoding.escape(id)
            headers.update(.authorization(username: user, password: PercentEncoding.escape(secret)))
        case .body(let secret):
            form["client_id"] = id
            form["client_secret"] = secret
        }
    }
}

extension OAuthClientAuthentication: CustomStringConvertible, CustomReflectable {
    /// The name of the method, as servers' metadata have it.
    public var description: String {
        switch method {
        case .none: "none"
        case .basic: "client_secret_basic"
        case .body: "client_secret_post"
        case .assertion(let key): key.algorithm == .hmacSHA256 ? "client_secret_jwt" : "private_key_jwt"
        case .certificate: "tls_client_auth"
        }
    }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["method": description]) }
}

/// The parameters of a request of OAuth, in order. One without a value is left out.
struct OAuthForm: Sendable, ExpressibleByDictionaryLiteral {
    private(set) var items: [(name: String, value: String)] = []

    init(dictionaryLiteral elements: (String, String?)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// The value of a parameter, which occurs once (RFC 6749, section 3.2).
    subscript(name: String) -> String? {
        get { items.first { $0.name.hasSameBytes(as: name) }?.value }
        set {
            items.removeAll { $0.name.hasSameBytes(as: name) }
            append(name, newValue)
        }
    }

    /// Adds a parameter that may occur several times.
    mutating func append(_ name: String, _ value: String?) {
        if let value, !value.isEmpty { items.append((name, value)) }
    }

    mutating func append(scope: [String], resources: [String]) {
        append("scope", scope.joined(separator: " "))
        for resource in resources { append("resource", resource) }
    }

    /// The form, or the query of a URL.
    var encoded: String {
        items.map { "\(PercentEncoding.escape($0.name))=\(PercentEncoding.escape($0.value))" }.joined(separator: "&")
    }
}
