// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// What is reported to instruments and monitors about a request's exchanges, and the context in which users' code is called.

extension RequestDriver {
    /// Calls `body`, which calls users' code, in the context of the request's caller.
    func inContext<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        guard let context else { return try body() }
        var result: Result<Value, Failure>?
        context.run { result = Result(catching: body) }
        // A carrier that does not call its closure breaks its contract; the code still has to run.
        guard let result else { return try body() }
        return try result.get()
    }

    /// Describes an exchange of the request.
    func outgoingExchange(
        _ request: TransferRequest, _ reason: OutgoingExchange.Reason, number: Int, cacheReason: CacheReason? = nil,
        isInBackground: Bool = false
    ) -> OutgoingExchange {
        let (retryCount, isReopened) = state.withLock { ($0.retryCount, $0.lifecycle.isReopened) }
        return OutgoingExchange(
            requestID: requestID, name: settings?.options.name, number: number, attempt: Int(retryCount) + 1, reason: reason,
            method: request.method, url: request.url, headers: request.headers, bodyLength: request.body.flatMap(\.length),
            isWebSocketHandshake: false, isUpgradedByHSTS: request.isUpgraded, cacheReason: cacheReason,
            isAfterEnd: isReopened || isInBackground,
            captured: context)
    }

    /// Why a transfer of the current attempt has failed: where the driver has ended it, the driver's reason for that. `nil` if the response
    /// was received, or its body was cut off only because a follow-up takes its place.
    func exchangeError(after completion: TransferCompletion, of id: Int) -> (any Error)? {
        guard let error = session.explained(completion).error else { return nil }
        guard case CurlewError.cancelled = error else { return error }
        return state.withLock { state -> (any Error)? in
            guard state.number == id else { return error }
            if state.isCutOff { return nil }
            if case .fail(let reason) = state.attempt.decision { return reason }
            return state.explained(state.attempt.error ?? error, state.request)
        }
    }

    /// Why an exchange is sent.
    func reason(of followUp: FollowUp.Kind?) -> OutgoingExchange.Reason {
        followUp?.reason ?? (state.withLock { $0.countedRetries } > 0 ? .retry : .first)
    }

    /// Notes an exchange that is reported to the monitors at its end.
    func noteExchange(_ request: TransferRequest, _ reason: OutgoingExchange.Reason) {
        let number = state.withLock { $0.transactionCount } + 1
        let reported = ReportedExchange(outgoingExchange(request, reason, number: number))
        state.withLock { $0.reportedExchange = reported }
    }

    /// Reports the end of an exchange to the monitors.
    func reportExchange(_ id: Int, _ completion: TransferCompletion) {
        let (request, reported, head) = state.withLock { state -> (Request?, ReportedExchange?, ResponseHead?) in
            guard state.number == id else { return (nil, nil, nil) }
            defer { state.reportedExchange = nil }
            return (state.request, state.reportedExchange, state.attempt.head)
        }
        guard let request, let reported else { return }
        let error = exchangeError(after: completion, of: id).map { session.delivered($0) }
        let end = ExchangeCompletion(head: head, error: error, metrics: completion.metrics)
        let metrics = completion.metrics
        if let outcome = metrics.cacheOutcome, session.isMonitored(.cache), let status = metrics.cacheStatus {
            let reason = metrics.cacheReason ?? .notStored
            session.notifyMonitors(of: request, .cache) { $0.request(request, didUseCache: outcome, because: reason, status: status) }
        }
        guard session.isMonitored(.exchanges) else { return }
        session.notifyMonitors(of: request, .exchanges) { $0.request(request, didCompleteExchange: reported.exchange, with: end) }
    }

    /// Reports to the monitors that the request has finished, and that it has failed if it has.
    func reportEnd(of request: Request) {
        if session.isMonitored(.failures),
            case (let error?, let hasHandler) = state.withLock({ ($0.attempt.error, $0.lifecycle.hasHandler) })
        {
            let isHandled = hasHandler || body.hasReader
            let delivered = session.delivered(error)
            session.notifyMonitors(of: request, .failures) { $0.request(request, didFailWith: delivered, isHandled: isHandled) }
        }
        if session.isMonitored(.end) { session.notifyMonitors(of: request, .end) { $0.requestDidFinish(request) } }
    }
}

extension Request {
    /// Whether the request has finished before, and was reopened by a late validation: its end is not reported again.
    package var isReopened: Bool { driver.state.withLock { $0.lifecycle.isReopened } }
}
