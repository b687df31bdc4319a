// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// How a session follows redirects (RFC 9110, section 15.4).
///
/// 301 and 302 turn a POST into a GET, 303 turns every method but HEAD into a GET, 307 and 308 keep method and body. A redirect to another
/// origin (scheme, host or port) is sent without credentials.
public struct RedirectPolicy: Sendable, Hashable {
    /// The largest number of redirects that a request follows; 20 by default. One more fails the request; with 0 the redirect itself is the
    /// response.
    public var limit = 20

    /// Whether redirects from `https` to `http` are followed; `false`, the default, fails the request.
    public var allowsInsecureDowngrade = false

    /// Names of header fields that are not sent to another origin, in addition to `Authorization`, `Cookie`, `Proxy-Authorization` and
    /// `Host`; empty by default. Case-insensitive.
    ///
    /// Their values are redacted in descriptions too (``Redaction``).
    public var sensitiveHeaders: Set<String> = []

    /// Creates a policy with the defaults.
    public init() {}
}

extension RedirectPolicy {
    /// The header fields that describe a body and are removed with it (RFC 9110, section 15.4).
    static let contentHeaders = ["Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Length", "Digest"]

    /// Returns the request that follows a redirect; `nil` if the response is the result.
    ///
    /// - Parameters:
    ///   - redirectCount: the number of redirects that have been followed.
    ///   - rewindsBody: whether a body that is sent again is rewound here, and the redirect fails if that is impossible. With `false` the
    ///     caller does that, because a closure may still drop the body.
    func next(
        after request: TransferRequest, _ head: ResponseHead, redirectCount: Int, rewindsBody: Bool = true
    ) throws(CurlewError) -> TransferRequest? {
        // An empty Location leads nowhere: the response is the result.
        guard limit > 0, head.isRedirect, let location = head.bytes(of: "Location"), !location.isEmpty else { return nil }
        guard redirectCount < limit else { throw .redirectFailed(reason: .tooMany(limit: limit)) }
        guard let from = URL(string: request.url), let target = try Self.resolve(Array(location), against: from) else {
            throw .redirectFailed(reason: .invalidLocation(head.value(for: "Location") ?? ""))
        }
        if from.scheme?.lowercased() == "https", target.scheme?.lowercased() == "http", !allowsInsecureDowngrade {
            throw .redirectFailed(reason: .insecureDowngrade(to: target))
        }
        var next = request
        next.url = target.absoluteString
        changeMethod(of: &next, for: head.statusCode)
        if rewindsBody, next.body?.rewind() == false { throw .redirectFailed(reason: .bodyNotRepeatable) }
        if Origin(from) != Origin(target) { removeCredentials(from: &next) }
        return next
    }

    private func changeMethod(of request: inout TransferRequest, for status: Int) {
        let becomesGet = status == 303 ? request.method != .head && request.method != .get : status < 303 && request.method == .post
        guard becomesGet else { return }
        request.method = .get
        request.body = nil
        for name in Self.contentHeaders { request.headers.remove(name: name) }
    }

    private func removeCredentials(from request: inout TransferRequest) {
        for name in credentialHeaders { request.headers.remove(name: name) }
    }

    /// The names of the header fields that are not sent to another origin.
    var credentialHeaders: [String] { ["Authorization", "Cookie", "Proxy-Authorization", "Host"] + sensitiveHeaders }

    /// Resolves a `Location` to an absolute URL, or `nil`; one without a fragment inherits the request's (RFC 9110, section 10.2.2).
    ///
    /// Unlike URLs of requests it is repaired: bytes that are invalid in a URL are percent-encoded one by one, and then an
    /// internationalized host is converted (``URLHost``). A user name and password in it are dropped: libcurl would send them as Basic, so
    /// that a server could choose the account under which a request is made.
    private static func resolve(_ bytes: [UInt8], against base: URL) throws(CurlewError) -> URL? {
        let repaired = bytes.indices.map { index in
            let byte = bytes[index]
            let isSound = byte == UInt8(ascii: "%") ? isEscape(bytes[index...].prefix(3)) : isURLByte(byte)
            return isSound ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
        guard let target = repaired.resolved(against: base), let scheme = target.scheme?.lowercased(),
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

    /// Whether bytes are a percent sign with two hexadecimal digits.
    private static func isEscape(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count == 3 && bytes.dropFirst().allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    private static func isURLByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !#""<>\^`{|}"#.utf8.contains(byte)
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

extension TransferRequest {
    /// Returns the follow-up with the rest of the total timeout, which limits all exchanges of a task together.
    func continuing(after elapsed: Duration) -> TransferRequest {
        var next = self
        next.options.totalTimeout = options.totalTimeout.map { max($0 - elapsed, .zero) }
        return next
    }
}
