// SPDX-License-Identifier: Apache-2.0
import CurlewCookies
import CurlewHTTP
import CurlewTransport

// For exchanges over raw streams, such as WebSocket handshakes, which use the session's cookies too.

extension Session {
    /// Returns the value of `Cookie` for a GET of a URL: the user's cookies, then the session's; `nil` if there are none.
    ///
    /// - Parameter document: the request's `mainDocumentURL`; `nil`, the default, for none.
    package func cookieField(for url: String, given: String?, in document: URL? = nil) -> String? {
        guard let cookies else { return given }
        return cookies.adding(to: cookieRequest(for: url, given: given, in: document)).headers["Cookie"]
    }

    /// Stores the cookies of a response. May block, so it must not run on the event loop's thread.
    ///
    /// - Parameter document: the request's `mainDocumentURL`; `nil`, the default, for none.
    package func storeCookies(of head: ResponseHead, from url: String, in document: URL? = nil) {
        cookies?.store(head, of: cookieRequest(for: url, given: nil, in: document))
    }

    private func cookieRequest(for url: String, given: String?, in document: URL?) -> TransferRequest {
        var headers = HTTPHeaders()
        headers["Cookie"] = given
        var request = TransferRequest(url: url, method: .get, headers: headers)
        request.mainDocumentURL = document?.absoluteString
        return request
    }
}

extension SessionConfiguration {
    /// Returns the jar of a session; `nil` without a store and a storage.
    func makeCookieJar() -> CookieJar? {
        let backing: (any CookieBacking)? = cookies ?? cookieStorage.map { FoundationCookies(storage: $0) }
        return backing.map { CookieJar($0, acceptPolicy: cookieAcceptPolicy, sendsCookies: sendsCookies) }
    }
}
