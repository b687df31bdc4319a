// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewHTTP
import CurlewTransport

// For exchanges over raw streams, such as WebSocket handshakes, which use the session's cookies too.

extension Session {
    /// Returns the value of `Cookie` for a GET of a URL: the user's cookies, then the session's; `nil` if there are none.
    package func cookieField(for url: String, given: String?) -> String? {
        guard let cookies else { return given }
        return cookies.adding(to: cookieRequest(for: url, given: given)).headers["Cookie"]
    }

    /// Stores the cookies of a response. May block, so it must not run on the event loop's thread.
    package func storeCookies(of head: ResponseHead, from url: String) {
        cookies?.store(head, of: cookieRequest(for: url, given: nil))
    }

    private func cookieRequest(for url: String, given: String?) -> TransferRequest {
        var headers = HTTPHeaders()
        headers["Cookie"] = given
        return TransferRequest(url: url, method: .get, headers: headers)
    }
}

extension SessionConfiguration {
    /// Returns the jar of a session; `nil` without a store and a storage.
    func makeCookieJar() -> CookieJar? {
        let backing: (any CookieBacking)? = cookies ?? cookieStorage.map { FoundationCookies(storage: $0) }
        return backing.map { CookieJar($0, acceptPolicy: cookieAcceptPolicy, sendsCookies: sendsCookies) }
    }
}
