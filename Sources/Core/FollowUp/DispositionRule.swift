// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading

/// Has the delegate's closure decide about a data request's response: receive it, cancel the request, or turn it into a download.
enum DispositionRule: ResponseRule {
    static func decision(on head: ResponseHead, of task: SessionTask, in driver: RequestDriver) -> RuleResult {
        let isAsked = driver.closures { $0.dataTaskDidReceiveResponse != nil }
        return isAsked && driver.body is DataReceiver ? .ask : .pass
    }

    static func decide(_ response: PendingResponse, _ done: @escaping @Sendable (ResponseDecision?) -> Void) {
        guard let closure = response.closures.dataTaskDidReceiveResponse, response.driver.body is DataReceiver,
            let foundationResponse = response.response
        else { return done(nil) }
        let disposition = response.wait { done(decision($0)) }
        response.driver.inContext { closure(response.session, response.task, foundationResponse) { disposition($0) } }
    }

    private static func decision(_ disposition: URLSession.ResponseDisposition) -> ResponseDecision? {
        switch disposition {
        case .cancel: .fail(CurlewError.cancelled)
        case URLSession.ResponseDisposition.download: .becomeDownload
        default: nil
        }
    }
}

extension URLSession.ResponseDisposition {
    /// `becomeDownload`, which Foundation on Linux has deprecated because its own sessions can't do it.
    static let download = URLSession.ResponseDisposition(rawValue: 2)
}
