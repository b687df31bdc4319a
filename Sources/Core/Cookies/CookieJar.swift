// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// A session's cookies, in a storage of Foundation's: added to each exchange, taken from each response (RFC 6265).
final class CookieJar: Sendable {
    private let storage: HTTPCookieStorage

    /// `nil` when the session has no cookie storage.
    init?(_ configuration: SessionConfiguration) {
        guard let storage = configuration.cookieStorage else { return nil }
        self.storage = storage
    }

    /// The request with the cookies for its URL, behind those that the user has set.
    func adding(to request: TransferRequest) -> TransferRequest {
        guard let url = URL(string: request.url), let cookies = storage.cookies(for: url), !cookies.isEmpty else { return request }
        var result = request
        let pairs = cookies.map { "\($0.name)=\($0.value)" }
        result.headers["Cookie"] = ([request.headers["Cookie"]].compactMap { $0 } + pairs).joined(separator: "; ")
        return result
    }

    /// Keeps the cookies that a response brought. May block: not on the transport's thread.
    func store(_ head: ResponseHead, of url: String) {
        guard let url = URL(string: url) else { return }
        for value in head.headers.values(for: "Set-Cookie") {
            for cookie in HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": value], for: url) { storage.setCookie(cookie) }
        }
    }
}
