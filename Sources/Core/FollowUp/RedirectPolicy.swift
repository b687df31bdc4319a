// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// How a session follows redirects (RFC 9110, section 15.4).
///
/// 301 and 302 turn a POST into a GET, 303 turns every method but HEAD into a GET, 307 and 308 keep method and body. A redirect to another
/// origin (scheme, host or port) is sent without credentials: without `Authorization`, `Cookie`, `Proxy-Authorization`, fields whose names
/// are usual for secrets, such as `X-Api-Key` or `X-Auth-Token`, and those that are marked in ``Redaction/headers``.
public struct RedirectPolicy: Sendable, Hashable {
    /// The largest number of redirects that a request follows; 20 by default. One more fails the request; with 0 the redirect itself is the
    /// response.
    public var limit = 20

    /// Whether redirects from `https` to `http` are followed; `false`, the default, fails the request.
    public var allowsInsecureDowngrade = false

    /// Names of header fields that are not sent to another origin, in addition to `Authorization`, `Cookie`, `Proxy-Authorization`, `Host`
    /// and those whose names are usual for secrets; empty by default. Case-insensitive.
    ///
    /// Their values are redacted in descriptions too, and like all marks of a ``Redaction`` they count for the whole process from then on: in
    /// redirects, resume data and caches of other sessions as well.
    public var sensitiveHeaders: Set<String> = []

    /// Names of header fields that are sent to other origins although they are usual for secrets or marked in ``Redaction/headers``; empty by
    /// default. Case-insensitive.
    ///
    /// Has no effect on `Authorization`, `Cookie`, `Proxy-Authorization`, `Host` and ``sensitiveHeaders``. The server that redirects chooses
    /// who receives these values.
    public var forwardedHeaders: Set<String> = []

    /// Creates a policy with the defaults.
    public init() {}
}

extension RedirectPolicy {
    /// The header fields that describe a body and are removed with it (RFC 9110, section 15.4).
    static let contentHeaders = [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Length", "Content-Range", "Digest",
        "Content-Digest", "Repr-Digest", "Last-Modified",
    ]

    /// Returns the request that follows a redirect; `nil` if the response is the result.
    ///
    /// - Parameters:
    ///   - redirectCount: the number of redirects that have been followed.
    ///   - rewindsBody: whether a body that is sent again is rewound here, and the redirect fails if that is impossible. With `false` the
    ///     caller does that, because a closure may still drop the body.
    ///   - hsts: the hosts that are connected to over TLS only, also for `http`: a redirect to one is no downgrade, and may lead to the same
    ///     origin.
    func next(
        after request: TransferRequest, _ head: ResponseHead, redirectCount: Int, rewindsBody: Bool = true, hsts: HSTSStore? = nil
    ) throws(CurlewError) -> TransferRequest? {
        // An empty Location leads nowhere: the response is the result.
        guard limit > 0, head.isRedirect, let location = head.bytes(of: "Location"), !location.isEmpty else { return nil }
        guard redirectCount < limit else { throw .redirectFailed(reason: .tooMany(limit: limit)) }
        guard let from = URL(string: request.url), let target = try Self.resolve(location, against: from) else {
            throw .redirectFailed(reason: .invalidLocation(head.value(for: "Location") ?? ""))
        }
        // Before all else (RFC 6797, section 8.3), so that what is decided here is true of the URL to which the request is sent;
        // `SessionTask.start` upgrades the first request, and what closures have changed.
        let upgraded = hsts?.upgraded(target.absoluteString).flatMap { URL(string: $0) }
        let reached = upgraded ?? target
        if from.scheme?.lowercased() == "https", reached.scheme?.lowercased() == "http", !allowsInsecureDowngrade {
            throw .redirectFailed(reason: .insecureDowngrade(to: reached))
        }
        var next = request
        let isSameOrigin = HTTPOrigin(from) == HTTPOrigin(reached)
        next.url = reached.absoluteString
        // A relative reference has kept them.
        if isSameOrigin, reached.user == nil { next.url = next.url.withUserInfo(of: request.url) }
        if next.isUpgraded || upgraded != nil { next.isUpgraded = upgraded != nil }
        if next.isServerWide { next.isServerWide = false }
        changeMethod(of: &next, for: head.statusCode)
        if rewindsBody, next.body?.rewind() == false { throw .redirectFailed(reason: .bodyNotRepeatable) }
        if !isSameOrigin { removeCredentials(from: &next.headers) }
        return next
    }

    private func changeMethod(of request: inout TransferRequest, for status: Int) {
        let becomesGet = status == 303 ? request.method != .head && request.method != .get : status < 303 && request.method == .post
        guard becomesGet else { return }
        request.method = .get
        request.body = nil
        for name in Self.contentHeaders { request.headers.remove(name: name) }
    }

    /// Removes the header fields that are not sent to another origin.
    package func removeCredentials(from headers: inout HTTPHeaders) {
        headers = HTTPHeaders(headers.filter { !isCredential($0) })
    }

    /// Whether a header field is not sent to another origin.
    func isCredential(_ header: HTTPHeader) -> Bool {
        if (["Authorization", "Cookie", "Proxy-Authorization", "Host"] + sensitiveHeaders).contains(where: { header.isNamed($0) }) {
            return true
        }
        return Redaction.current.hides(header: header.name) && !forwardedHeaders.contains { header.isNamed($0) }
    }

    /// Resolves a `Location` to an absolute URL, or `nil`; one without a fragment inherits the request's (RFC 9110, section 10.2.2).
    ///
    /// Unlike URLs of requests it is repaired (``Swift/String/resolved(against:)``), and then an internationalized host is converted
    /// (``URLHost``). A user name and password in it are dropped: libcurl would send them as Basic, so that a server could choose the
    /// account under which a request is made.
    private static func resolve(_ bytes: ArraySlice<UInt8>, against base: URL) throws(CurlewError) -> URL? {
        guard let target = String.resolve(bytes, against: base), let scheme = target.scheme?.lowercased(),
            scheme == "http" || scheme == "https", target.host?.isEmpty == false, let url = try normalizingHost(of: target)
        else { return nil }
        guard url.fragment == nil, let fragment = base.fragment else { return url }
        return URL(string: url.absoluteString + "#" + fragment)
    }

    /// Returns the URL with its host normalized; `nil` if the host is invalid.
    private static func normalizingHost(of url: URL) throws(CurlewError) -> URL? {
        let text = url.absoluteString
        guard !PlainURL.isPlain(text) else { return url }
        do {
            let normalized = try text.normalizingHost()
            return normalized == text ? url : URL(string: normalized)
        } catch {
            guard case .notConvertible = error else { return nil }
            throw .invalidHost(error, of: text)
        }
    }
}

extension ResponseHead {
    /// Whether the status is one of those that are followed if there is a `Location` (RFC 9110, section 15.4).
    var isRedirect: Bool {
        switch statusCode {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
}
