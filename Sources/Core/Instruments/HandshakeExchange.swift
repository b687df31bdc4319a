// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An attempt of a handshake over a raw connection, such as a WebSocket's, as an exchange for the session's instruments.
///
/// Ends once: when it is told to, or with its release. Thread-safe.
final class HandshakeExchange: Sendable {
    private struct State {
        /// `nil` after the end.
        var observations: Observations?
        var head: ResponseHead?
    }

    private let state: Lock<State>
    private let startDate = Date()
    private let startTime = ContinuousClock.now

    fileprivate init(_ observations: Observations) {
        state = Lock(State(observations: observations))
    }

    deinit {
        end(with: CurlewError.cancelled)
    }

    /// Sets the fields that the instruments want.
    func setFields(of headers: inout HTTPHeaders) {
        state.withLock { $0.observations }?.setFields(of: &headers)
    }

    /// The response's head was received.
    func received(_ head: ResponseHead) {
        let observations = state.withLock { state in
            state.head = head
            return state.observations
        }
        observations?.received(head)
    }

    /// The handshake has ended; only the first call has an effect.
    func end(with error: (any Error)?) {
        let (observations, head) = state.withLock { state in
            defer { state.observations = nil }
            return (state.observations, state.head)
        }
        guard let observations else { return }
        var metrics = TransferMetrics()
        metrics.startDate = startDate
        metrics.total = startTime.duration(to: .now)
        if head?.httpVersion == "HTTP/1.1" { metrics.httpVersion = .http1_1 }
        observations.ended(ExchangeCompletion(head: head, error: error, metrics: metrics))
    }
}

extension StreamHandshake {
    /// Begins the exchange of the request's attempt, as the last step before it is sent; `nil` if no instrument observes it.
    func beginExchange(of request: Request, attempt: Int) -> HandshakeExchange? {
        guard request.session.isInstrumented else { return nil }
        let driver = request.driver
        let exchange = OutgoingExchange(
            requestID: request.id, name: request.name, number: driver.state.withLock { $0.countExchange() }, attempt: attempt,
            reason: attempt > 1 ? .retry : isReconnection ? .reconnection : .first, method: .get, url: url, headers: headers,
            bodyLength: nil, isWebSocketHandshake: true, isUpgradedByHSTS: isUpgraded, cacheReason: nil, isAfterEnd: false,
            captured: driver.context)
        let observations = Observations(request.session.configuration.instruments, exchange)
        return observations.isEmpty ? nil : HandshakeExchange(observations)
    }
}
