// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

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
