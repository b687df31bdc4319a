// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Stores what every response, redirects included, says about its host: cookies (RFC 6265bis, section 5.7), and whether it is to be
/// connected to over TLS only (RFC 6797, section 8.1). Decides nothing.
enum HostStateRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        let session = driver.session
        guard session.keepsHostState else { return .pass }
        let cookies = session.cookies.flatMap { head.hasLine(beginningWith: "set-cookie") && head.contains("set-cookie") ? $0 : nil }
        let change = session.hsts == nil ? nil : task.currentTransfer.flatMap { session.securityChange(in: head, from: $0.url) }
        let mayBlock = cookies?.storingMayBlock ?? false || change != nil && session.notingMayBlock
        guard !mayBlock else { return .ask }
        if let transfer = task.currentTransfer {
            cookies?.store(head, of: transfer)
            if let change { session.note(change, in: transfer, driver.ownedTask) }
        }
        return .pass
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        let session = response.session
        if response.head.contains("set-cookie") { session.cookies?.store(response.head, of: response.transfer) }
        if let change = session.securityChange(in: response.head, from: response.transfer.url) {
            session.note(change, in: response.transfer, response.driver.ownedTask)
        }
        done(nil)
    }
}
