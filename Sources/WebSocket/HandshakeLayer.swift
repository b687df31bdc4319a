// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

/// A layer above that takes part in each handshake of a WebSocket: it follows redirects, and answers challenges, by making another
/// connection after a rejection.
package protocol HandshakeLayer: AnyObject, Sendable {
    /// The owner of the request of the next connection; `nil` to leave its decisions to the session's delegate.
    var owner: (any RequestOwner)? { get }

    /// Returns the request that is sent on a connection, complete but for cookies and the fields of the handshake itself.
    ///
    /// - Parameter adapted: the request of the connection after the session's adapters, with TLS where its host is known to want that, and
    ///   without the session's header fields.
    func prepare(_ adapted: URLRequest, in session: Session) -> URLRequest

    /// An attempt begins, on the thread of the attempt. Called only with an ``owner``.
    func began(_ exchange: HandshakeExchange)
}

extension URLRequest {
    /// Removes the header fields that a handshake sets itself.
    package mutating func removeHandshakeFields() {
        for name in HandshakeRequest.ownFields { setValue(nil, forHTTPHeaderField: name) }
    }
}

// The calls of such a layer: with closures, which are called on any thread, in the order of the events.

extension WebSocket {
    /// Calls `body` when the WebSocket is open for the first time; never if it ends before.
    package func whenOpen(_ body: @escaping @Sendable (WebSocketHandshake) -> Void) {
        driver.state.when {
            if let handshake = $0.handshake { return .some(.some(handshake)) }
            return $0.end == nil ? nil : .some(nil)
        } _: { (handshake: WebSocketHandshake?) in
            if let handshake { body(handshake) }
        }
    }

    /// Calls `body` with the error by which the WebSocket has ended, before the calls for messages that this ends; never after a closure.
    package func whenFailed(_ body: @escaping @Sendable (any Error) -> Void) {
        driver.state.when {
            $0.end
        } _: { (end: Result<WebSocketClosure, any Error>) in
            if case .failure(let error) = end { body(error) }
        }
    }

    /// Calls `body` with how the WebSocket ends, when both close frames were exchanged, or after the end without them; after all calls for
    /// messages that this ends.
    package func whenConcluded(_ body: @escaping @Sendable (Result<WebSocketClosure, any Error>) -> Void) {
        driver.state.when(isLast: true, { $0.conclusion }, body)
    }

    /// Calls `body` after the calls of what has happened by now: at once, or after the one in which this is called.
    package func afterCalls(_ body: @escaping @Sendable () -> Void) {
        driver.state.when { _ -> Void? in
            ()
        } _: {
            body()
        }
    }

    /// Sends a message after those sent before; calls `done` when it was written to the network, or never will be.
    package func send(_ message: WebSocketMessage, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        do {
            let number = try driver.state.update { try $0.sendNumbered(message) }
            driver.state.when({ $0.writeOutcome(of: number) }, done)
        } catch {
            // In the order of events, too: calls about the change that is why may wait.
            driver.state.when { _ -> (any Error)? in
                error
            } _: {
                done(.failure($0))
            }
        }
    }

    /// Calls `body` with the next message, after calls that wait for earlier ones, or with the error after which there is none:
    /// ``WebSocketError/closed(_:)`` also after a normal closure. Returns a number for ``stopReceiving(_:)``.
    package func receive(_ body: @escaping @Sendable (Result<WebSocketMessage, any Error>) -> Void) -> Int {
        driver.state.when({ $0.nextOutcome() }, body)
    }

    /// Ends a wait for a message; `false` if it has one already.
    package func stopReceiving(_ number: Int) -> Bool { driver.state.forget(number) }

    /// Sends a ping as soon as the WebSocket is open; calls `done` with its pong, or when there can't be one.
    package func ping(_ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        driver.state.when { (state: inout SocketState) -> Result<Int, any Error>? in
            if let refusal = state.refusal { return .failure(refusal) }
            guard case .open = state.status else { return nil }
            let payload = SocketReconnector.makePingPayload()
            return Result { try state.ping(payload) }
        } _: { [state = driver.state] (sent: Result<Int, any Error>) in
            switch sent {
            case .failure(let error): done(.failure(error))
            case .success(let number): state.when({ $0.pongOutcome(forPing: number) ?? $0.refusal.map { .failure($0) } }, done)
            }
        }
    }

    /// The bytes of the messages that were written to the network and that were received, before compression.
    package var messageBytes: (sent: Int64, received: Int64) { driver.state.update { ($0.bytesSent, $0.bytesReceived) } }

    /// The server's close frame; `nil` before it, and without one. Known before a call for a message fails because of it.
    package var peerClosure: WebSocketClosure? { driver.state.update { $0.peerClosure } }

    /// Closes the WebSocket after the messages already sent, without waiting for it. The closure must be one that may be sent.
    package func beginClose(_ closure: WebSocketClosure) {
        driver.state.update { $0.close(closure) }
    }
}

extension SocketState {
    /// Queues a message and returns its number.
    mutating func sendNumbered(_ message: WebSocketMessage) throws -> Int {
        if let refusal { throw refusal }
        _ = try send(message)
        return lastQueued
    }

    /// The result of a numbered message: success once it was written, an error if it never will be, `nil` while it waits.
    func writeOutcome(of number: Int) -> Result<Void, any Error>? {
        if lost.contains(number) { return .failure(refusal ?? WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))) }
        if number <= lastWritten { return .success(()) }
        // What is being written when the server closes may have reached it.
        guard end != nil || peerClosure != nil && number > lastWritten + countInFlight else { return nil }
        return refusal.map { .failure($0) }
    }

    /// The next message, or why there is none; `nil` while neither is known.
    mutating func nextOutcome() -> Result<WebSocketMessage, any Error>? {
        switch nextMessage() {
        case .success(let message?): .success(message)
        case .success(nil), .failure, nil: refusal.map { .failure($0) }
        }
    }

    /// Why no message is exchanged any more, as soon as that is known: the end itself waits for the server to close the connection.
    var refusal: (any Error)? {
        switch closing {
        case .byUser: CurlewError.cancelled
        case .byPeer(let closure): WebSocketError.closed(closure)
        case .failed(let closure): FrameViolation(code: closure.code, message: closure.reason).error
        case nil: terminalError
        }
    }

    /// How the WebSocket has ended or will have: known when both sides have sent their close frames.
    var conclusion: Result<WebSocketClosure, any Error>? {
        if let end { return end }
        guard isSendingFinished else { return nil }
        if let peerClosure { return .success(peerClosure) }
        if case .failed = closing { return refusal.map { .failure($0) } }
        return nil
    }
}
