// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// How a client authenticates to its authorization server (RFC 6749, section 2.3). No description shows a secret.
public struct OAuthClientAuthentication: Sendable {
    enum Method: Sendable {
        case none
        case basic(String)
        case body(String)
    }

    let method: Method

    /// A public client, such as a program on a user's computer, which has no secret: it only names itself.
    public static let none = OAuthClientAuthentication(method: .none)

    /// A secret, sent as the password of HTTP's Basic scheme, which every server has to support (`client_secret_basic`).
    public static func secret(_ secret: String) -> OAuthClientAuthentication { OAuthClientAuthentication(method: .basic(secret)) }

    /// A secret, sent in the form (`client_secret_post`): only for servers that do not support the Basic scheme.
    public static func secretInBody(_ secret: String) -> OAuthClientAuthentication { OAuthClientAuthentication(method: .body(secret)) }

    /// Adds what authenticates a client to a request.
    func authenticate(_ id: String, _ headers: inout HTTPHeaders, _ form: inout OAuthForm) {
        switch method {
        case .none: form["client_id"] = id
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
