// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewEncoding
import CurlewHTTP

// The cookies of a storage by the rules of RFC 6265, for layers above: on Linux Foundation's own methods ignore paths, `Secure` and host-only
// cookies, and drop cookies of a domain that its host itself has set.

extension HTTPCookieStorage {
    /// The cookies that a session would send with a request, in their order; `nil` for a request without a URL of HTTP.
    package func cookies(sentWith request: URLRequest) -> [HTTPCookie]? {
        guard let url = request.url, let origin = CookieOrigin(url) else { return nil }
        return FoundationCookies(storage: self).cookies(for: origin, url: url)
    }

    /// Stores those of the cookies that the storage's policy accepts of the host of a request.
    package func store(_ cookies: [HTTPCookie], of request: URLRequest) {
        guard let origin = request.url.flatMap({ CookieOrigin($0) }),
            cookieAcceptPolicy.accepts(origin, in: request.mainDocumentURL?.absoluteString)
        else { return }
        for cookie in cookies {
            let domain = cookie.bareDomain
            guard cookie.isHostOnly ? domain == origin.host : CookieRules.domainMatches(host: origin.host, domain: domain) else { continue }
            setCookie(cookie)
        }
    }
}
