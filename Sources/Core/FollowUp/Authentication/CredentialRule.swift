// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Notes whether a response has accepted the credentials of its request. Decides nothing.
enum CredentialRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        driver.state.withLock { $0.authentication?.answer != nil } ? .ask : .pass
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        response.driver.noteAuthentication(response.head, of: response.transfer)
        done(nil)
    }
}
