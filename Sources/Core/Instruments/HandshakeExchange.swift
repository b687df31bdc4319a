// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// An attempt of a handshake over a raw connection, such as a WebSocket's, as an exchange: for the session's instruments, and for a layer
/// that shows its program what was measured.
///
/// Ends once: by the first ``end(with:_:failed:)``, or with its release. Thread-safe.
package final class HandshakeExchange: Sendable {
    private struct State {
        /// `nil` after the end, and if no instrument observes it.
        var observations: Observations?
        var hasEnded = false
        /// Those of the connection, from the opening on; those of the response, from the end on.
        var metrics = TransferMetrics()
        /// The time at which their total was measured.
        var measured = ContinuousClock.now
        /// `nil` if no layer wants it.
        var record: ExchangeRecord?

        /// The time from the start of the exchange to a later point.
        func elapsed(until time: ContinuousClock.Instant) -> Duration { metrics.total + measured.duration(to: time) }

        /// Takes over the measurements of the connection.
        ///
        /// - Parameter requestBytes: the length of the request; `nil` if the connection was not established.
        mutating func take(_ connection: TransferMetrics, requestBytes: Int?) {
            metrics = connection
            measured = .now
            // What libcurl has measured is a proxy's.
            metrics.requestHeaderBytes = Int64(requestBytes ?? 0)
            metrics.responseHeaderBytes = 0
            metrics.requestStart = requestBytes.map { _ in connection.total }
            metrics.responseStart = nil
            metrics.timesSent = requestBytes == nil ? 0 : 1
        }
    }

    private let state: Lock<State>

    fileprivate init(_ observations: Observations?, _ record: ExchangeRecord?) {
        state = Lock(State(observations: observations, record: record))
    }

    deinit {
        end(with: CurlewError.cancelled)
    }

    /// What was measured, until now if the exchange has not ended, with what was sent and received.
    package var measured: (metrics: TransferMetrics, record: ExchangeRecord?) {
        state.withLock { state in
            var metrics = state.metrics
            if !state.hasEnded { metrics.total = state.elapsed(until: .now) }
            return (metrics, state.record)
        }
    }

    /// The connection is established, and the request is sent.
    func opened(_ connection: TransferMetrics, requestBytes: Int) {
        state.withLock { state in
            if !state.hasEnded { state.take(connection, requestBytes: requestBytes) }
        }
    }

    /// The handshake has ended; only the first call has an effect.
    ///
    /// - Parameter failed: what was measured of the connection that has failed.
    func end(with error: (any Error)?, _ received: ReceivedHandshake = ReceivedHandshake(), failed: TransferMetrics? = nil) {
        let (observations, metrics) = state.withLock { state -> (Observations?, TransferMetrics) in
            guard !state.hasEnded else { return (nil, state.metrics) }
            state.hasEnded = true
            if let failed, state.metrics.timesSent == 0 { state.take(failed, requestBytes: nil) }
            if let start = received.start { state.metrics.responseStart = state.elapsed(until: start) }
            state.metrics.total = state.elapsed(until: .now)
            state.metrics.httpVersion = received.head.flatMap { TransferMetrics.HTTPVersion(rawValue: $0.httpVersion) }
            state.metrics.responseHeaderBytes = Int64(received.headBytes)
            state.metrics.responseBodyBytes = Int64(received.bodyBytes)
            state.record?.end(received)
            defer { state.observations = nil }
            return (state.observations, state.metrics)
        }
        guard let observations else { return }
        if let head = received.head { observations.received(head) }
        observations.ended(ExchangeCompletion(head: received.head, error: error, metrics: metrics))
    }
}

extension StreamHandshake {
    /// Begins the exchange of the request's attempt, as the last step before it is sent: `nil` if neither an instrument nor the layer
    /// observes it. Returns the fields of the request with it, those that instruments set among them.
    func beginExchange(of request: Request, attempt: Int) -> (exchange: HandshakeExchange?, headers: HTTPHeaders) {
        var headers = self.request.headers
        let observations = request.session.isInstrumented ? observations(of: request, attempt: attempt) : nil
        observations?.setFields(of: &headers)
        let record = didBegin.map { _ in
            ExchangeRecord(
                TransferRequest(
                    url: url, method: self.request.method, headers: self.request.fields(with: headers),
                    options: request.session.configuration.options))
        }
        guard record != nil || observations?.isEmpty == false else { return (nil, headers) }
        let exchange = HandshakeExchange(observations, record)
        didBegin?(exchange)
        return (exchange, headers)
    }

    private func observations(of request: Request, attempt: Int) -> Observations {
        let driver = request.driver
        let exchange = OutgoingExchange(
            requestID: request.id, name: request.name, number: driver.state.withLock { $0.countExchange() }, attempt: attempt,
            reason: attempt > 1 ? .retry : isReconnection ? .reconnection : .first, method: self.request.method, url: url,
            headers: self.request.headers, bodyLength: self.request.bodyLength, isWebSocketHandshake: isWebSocket,
            isUpgradedByHSTS: isUpgraded, cacheReason: nil, isAfterEnd: false,
            captured: driver.context)
        return Observations(request.session.configuration.instruments, exchange)
    }
}
