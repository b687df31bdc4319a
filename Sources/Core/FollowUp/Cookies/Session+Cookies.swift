// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

// For exchanges that travel over raw streams, and take part in the session's cookies all the same.

extension Session {
    /// What `Cookie` has to say in a GET of a URL, behind what the user has set in it; `nil` for nothing.
    package func cookieField(for url: String, given: String?) -> String? {
        guard let cookies else { return given }
        return cookies.adding(to: cookieRequest(for: url, given: given)).headers["Cookie"]
    }

    /// Keeps the cookies of the answer. May block: not on the transport's thread.
    package func storeCookies(of head: ResponseHead, from url: String) {
        cookies?.store(head, of: cookieRequest(for: url, given: nil))
    }

    private func cookieRequest(for url: String, given: String?) -> TransferRequest {
        var headers = HTTPHeaders()
        headers["Cookie"] = given
        return TransferRequest(url: url, method: .get, headers: headers)
    }
}

/// Stores the cookies of every response, redirects included (RFC 6265, section 5.3). Decides nothing.
struct CookieRule: ResponseRule {
    func verdict(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        driver.session.cookies != nil && head.contains("set-cookie") ? .ask : .pass
    }

    func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        response.session.cookies?.store(response.head, of: response.transfer)
        done(nil)
    }
}
