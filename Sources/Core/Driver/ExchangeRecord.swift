// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What was sent and received in an exchange, beside its metrics. Recorded for requests that have an owner; for others it would only take
/// time and memory.
package struct ExchangeRecord: Sendable {
    /// The request as it was handed to the transport, without a body that is a file or a stream.
    fileprivate let sent: TransferRequest
    fileprivate var head: ResponseHead?
    fileprivate var isOpen = true
    /// When the last byte of the body was handed to the network; `nil` for a request without one.
    package fileprivate(set) var bodyEnd: Date?
    /// The number of bytes of the response's body, decoded, whether they were delivered or dropped.
    package fileprivate(set) var decodedBytes: Int64 = 0

    /// - Parameter request: that of a handshake has the scheme of WebSockets.
    init(_ request: TransferRequest) {
        var request = request
        if let body = request.body, !(body is DataBody) { request.body = nil }
        sent = request
    }

    /// The request with the fields of the session, of cookies and of credentials. Made by each call.
    package var request: URLRequest? { sent.urlRequest }

    /// The response; `nil` without one. Made by each call.
    package var response: HTTPURLResponse? {
        head.flatMap { ResponseContext(transfer: sent, head: $0).response }
    }

    /// Whether the request was sent through a proxy.
    package var usesProxy: Bool {
        var request = sent
        request.url = request.url.withHTTPScheme
        return request.usesProxy
    }

    /// Whether the host's name was looked up by DNS over HTTPS (RFC 8484).
    package var usesDNSOverHTTPS: Bool { sent.options.dohURL != nil }

    /// Notes how a handshake has ended.
    mutating func end(_ received: ReceivedHandshake) {
        head = received.head
        decodedBytes = Int64(received.bodyBytes)
    }
}

extension RequestDriver {
    /// Whether the exchanges are recorded.
    var recordsExchanges: Bool { settings?.options.ownership != nil }

    /// Notes an exchange that is about to start.
    func recordExchange(_ request: TransferRequest) {
        state.withLock { $0.exchanges.append(ExchangeRecord(request)) }
    }

    /// Notes how the exchange of a task has ended, before its response is forgotten.
    func recordExchangeEnd(_ id: Int) {
        state.withLock { state in
            guard state.number == id, let last = state.exchanges.indices.last, state.exchanges[last].isOpen else { return }
            state.exchanges[last].isOpen = false
            state.exchanges[last].head = state.attempt.head
        }
    }
}

extension RequestState {
    /// Notes that bytes of the request's body were handed to the network.
    mutating func noteBodySent() {
        if let last = exchanges.indices.last { exchanges[last].bodyEnd = Date() }
    }

    /// Notes bytes of the response's body, decoded.
    mutating func noteBodyReceived(_ count: Int64) {
        if let last = exchanges.indices.last { exchanges[last].decodedBytes += count }
    }
}
