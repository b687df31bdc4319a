// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Where the cookies of a session are: a ``/CurlewCookies/CookieStore``, or a storage of Foundation.
protocol CookieBacking: Sendable {
    /// Whether storing, or reading what to send, may wait for a disk or for other code.
    var mayBlock: (storing: Bool, sending: Bool) { get }

    /// Whether there is certainly none to send: what the URL is need not be found out then.
    var isEmpty: Bool { get }

    /// Returns names and values of the cookies to send, in order.
    func pairs(for origin: CookieOrigin, url: URL, isCrossSite: Bool) -> [(name: String, text: String)]

    func store(_ cookies: [SetCookie], from origin: CookieOrigin, isCrossSite: Bool)
}

/// Adds a session's cookies to requests and stores those of responses (RFC 6265bis).
final class CookieJar: Sendable {
    /// The most cookies that are stored of one response.
    private static let limitPerResponse = 180

    private let backing: any CookieBacking
    private let acceptPolicy: HTTPCookie.AcceptPolicy
    private let sendsCookies: Bool
    /// Distinguishes the cookies from those of other stores, also of other processes.
    private let token: String

    init(_ backing: any CookieBacking, acceptPolicy: HTTPCookie.AcceptPolicy, sendsCookies: Bool) {
        self.backing = backing
        token = (backing as? CookieStore)?.identity ?? .makeToken()
        self.acceptPolicy = acceptPolicy
        self.sendsCookies = sendsCookies
    }

    /// Whether ``store(_:of:)`` must not run on the event loop's thread.
    var storingMayBlock: Bool { backing.mayBlock.storing }

    /// Whether ``adding(to:)`` must not run on the event loop's thread.
    var sendingMayBlock: Bool { sendsCookies && backing.mayBlock.sending }

    // MARK: Sending

    /// Returns the request with the cookies for its URL, after those that the user has set, which replace stored ones of the same name.
    func adding(to request: TransferRequest) -> TransferRequest {
        guard sendsCookies, request.handlesCookies, !backing.isEmpty else { return request }
        guard let url = URL(string: request.url), let origin = CookieOrigin(url) else { return request }
        let pairs = backing.pairs(for: origin, url: url, isCrossSite: Self.isCrossSite(request, origin))
        guard !pairs.isEmpty else { return request }
        let given = request.headers["Cookie"]
        let names = Set(given.map(Self.names) ?? [])
        let sent = pairs.filter { !names.contains($0.name) }
        guard !sent.isEmpty else { return request }
        var result = request
        result.headers["Cookie"] = ([given].compactMap { $0 } + sent.map(\.text)).joined(separator: "; ")
        result.jarCookies = TransferRequest.JarCookies(jar: token, given: given, names: sent.map(\.name))
        return result
    }

    /// The names in a `Cookie` field; that of a cookie without an equals sign is empty.
    private static func names(in field: String) -> [String] {
        field.splitScalars(separator: ";").map { part in
            part.unicodeScalars.contains("=") ? part.prefixScalars { $0 != "=" }.trimmingCharacters(in: .whitespaces) : ""
        }
    }

    /// Whether the request belongs to a document of another site (RFC 6265bis, section 5.2.1). One without a document is its own.
    private static func isCrossSite(_ request: TransferRequest, _ origin: CookieOrigin) -> Bool {
        guard let document = request.mainDocumentURL else { return false }
        guard let site = URL(string: document).flatMap({ CookieOrigin($0) }) else { return true }
        return !origin.isSameSite(as: site)
    }

    // MARK: Storing

    /// Stores the cookies of a response. Must not run on the event loop's thread if ``storingMayBlock``.
    func store(_ head: ResponseHead, of request: TransferRequest) {
        guard request.handlesCookies, let url = URL(string: request.url), let origin = CookieOrigin(url), accepts(origin, of: request)
        else {
            return
        }
        // A field with a control character is dropped (RFC 6265bis, section 5.6), rather than stored with a space in its place.
        let cookies = head.validValues(for: "Set-Cookie").prefix(Self.limitPerResponse).compactMap { SetCookie($0) }
        backing.store(cookies, from: origin, isCrossSite: Self.isCrossSite(request, origin))
    }

    /// Whether the policy accepts cookies of a host. `onlyFromMainDocumentDomain` compares it with the request's main document; a request
    /// without one is its own.
    private func accepts(_ origin: CookieOrigin, of request: TransferRequest) -> Bool {
        acceptPolicy.accepts(origin, in: request.mainDocumentURL)
    }
}

extension HTTPCookie.AcceptPolicy {
    /// Whether the policy accepts cookies of a host for a document; without one, the host's is meant.
    func accepts(_ origin: CookieOrigin, in document: String?) -> Bool {
        guard self != .never else { return false }
        guard self == .onlyFromMainDocumentDomain, let document else { return true }
        guard let host = URL(string: document)?.comparableHost else { return false }
        return [(host, origin.host), (origin.host, host)].contains { name, domain in
            CookieRules.domainMatches(host: name, domain: domain) && (name == domain || !CookieRules.isPublicSuffix(domain))
        }
    }
}

extension CookieStore: CookieBacking {
    var mayBlock: (storing: Bool, sending: Bool) { (hasFile, hasFile) }

    var isEmpty: Bool { false }

    func pairs(for origin: CookieOrigin, url: URL, isCrossSite: Bool) -> [(name: String, text: String)] {
        send(to: origin, isCrossSite: isCrossSite).map { ($0.name, $0.pair) }
    }
}
