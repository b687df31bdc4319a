// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// One connection of a WebSocket, from the completed handshake to its end: tasks that read, write, and enforce the timeouts.
struct SocketConnection: Sendable {
    let stream: StreamRequest
    let state: Watched<SocketState>
    let configuration: WebSocketConfiguration
    let handshake: WebSocketHandshake
    let agreement: DeflateAgreement?
    /// The bytes received after the handshake's head.
    let rest: Data

    /// The number of bytes written before pings and pongs are given a chance to overtake the rest of a message.
    private static let writeSize = 256 << 10
    /// The number of frames after which other tasks are given a turn: a frame may have two bytes.
    private static let framesAtOnce = 1_000

    /// Runs the connection to its end; returns the server's close frame or the error.
    func serve() async -> Result<WebSocketClosure, any Error> {
        await withTaskGroup(of: Result<WebSocketClosure, any Error>?.self) { group in
            group.addTask { await receive() }
            group.addTask { await send() }
            group.addTask { await enforceCloseTimeout() }
            if let interval = configuration.pingInterval, interval > .zero { group.addTask { await keepAlive(interval) } }
            defer {
                group.cancelAll()
                stream.cancel()
            }
            while let result = await group.next() {
                if let result { return result }
            }
            return .failure(CurlewError.cancelled)
        }
    }

    // MARK: Receiving

    private func receive() async -> Result<WebSocketClosure, any Error> {
        var bytes = stream.bytes().makeAsyncIterator()
        do {
            let closure = try await readMessages(from: &bytes)
            state.update { $0.receivedClose(closure) }
            await waitForEnd(&bytes)
            return .success(closure)
        } catch let violation as FrameViolation {
            await waitForReader()
            state.update { $0.failed(violation) }
            await waitForEnd(&bytes)
            return .failure(violation.error)
        } catch {
            let isTooLate = state.update { $0.hasClosingTimedOut }
            return .failure(isTooLate ? WebSocketError.timedOut(.close) : error)
        }
    }

    /// Reads messages up to the server's close frame.
    private func readMessages(from bytes: inout StreamBytes.Iterator) async throws -> WebSocketClosure {
        var reader = MessageReader(
            limits: .init(frame: configuration.maximumFrameSize, message: configuration.maximumMessageSize),
            inflater: agreement.map { MessageInflater($0) })
        reader.feed(rest)
        var frames = 0
        while true {
            while let event = try reader.next() {
                frames += 1
                if frames % Self.framesAtOnce == 0 {
                    await Task.yield()
                    try Task.checkCancellation()
                }
                switch event {
                case .message(let message): try await deliver(message)
                case .fragment: break
                case .ping(let payload): state.update { $0.receivedPing(payload) }
                case .pong(let payload): state.update { $0.receivedPong(payload) }
                case .close(let closure): return closure
                }
            }
            guard let piece = try await bytes.next() else {
                throw WebSocketError.closed(WebSocketClosure(code: .abnormalClosure))
            }
            reader.feed(piece)
        }
    }

    /// Queues a message for the reader, and waits while the buffer is full.
    private func deliver(_ message: WebSocketMessage) async throws {
        try await state.wait { $0.receive(message) ? () : nil }
    }

    /// Waits until the messages received before a violation are read, for at most the close timeout: they were valid, and the program may
    /// still respond to them.
    private func waitForReader() async {
        try? await withTimeout(configuration.closeTimeout, configuration.clock, throwing: CurlewError.cancelled) {
            try await state.wait { $0.isAllRead || $0.closing != nil ? () : nil }
        }
    }

    /// Waits until the close frame is sent and the server has closed the TCP connection, which it must do first (RFC 6455, section 7.1.1).
    private func waitForEnd(_ bytes: inout StreamBytes.Iterator) async {
        _ = try? await state.wait { $0.isSendingFinished ? () : nil }
        while let piece = try? await bytes.next(), !piece.isEmpty {}
    }

    // MARK: Sending

    private func send() async -> Result<WebSocketClosure, any Error>? {
        var writer = MessageWriter(
            largestFrame: configuration.outgoingFrameSize,
            deflater: agreement.flatMap { agreement in configuration.compression.map { MessageDeflater(agreement, $0) } })
        do {
            while true {
                let batch = try await state.wait { $0.takeBatch() }
                try await write(batch, with: &writer)
                let hasFailed = state.update { state in
                    state.batchSent(batch)
                    return if case .failed = state.closing { true } else { false }
                }
                guard batch.close != nil else { continue }
                // A server that violates the protocol can't be relied on to close the connection, so this side does.
                if hasFailed { stream.closeWrite() }
                return nil
            }
        } catch {
            // The reading task reports the reason.
            state.update { $0.sendingFailed() }
            return nil
        }
    }

    private func write(_ batch: SocketState.Batch, with writer: inout MessageWriter) async throws {
        var output = Data()
        for control in batch.controls { writer.write(control.opcode, control.payload, to: &output) }
        for message in batch.messages {
            try writer.begin(message)
            while !writer.writeFrame(to: &output) {
                guard output.count >= Self.writeSize else { continue }
                try await stream.write(output)
                output.removeAll()
                for control in state.update({ $0.takeControls() }) { writer.write(control.opcode, control.payload, to: &output) }
            }
        }
        if let close = batch.close { writer.write(.close, CloseFrame.payload(close), to: &output) }
        try await stream.write(output)
    }

    // MARK: Time

    /// Aborts the connection if closing exceeds its timeout.
    private func enforceCloseTimeout() async -> Result<WebSocketClosure, any Error>? {
        do {
            try await state.wait { $0.closing == nil ? nil : () }
            try await configuration.clock.sleep(for: configuration.closeTimeout)
        } catch {
            return nil
        }
        state.update { $0.closingTimedOut() }
        stream.cancel()
        return nil
    }

    /// Sends pings at an interval; returns when a pong times out.
    private func keepAlive(_ interval: Duration) async -> Result<WebSocketClosure, any Error>? {
        do {
            while true {
                try await configuration.clock.sleep(for: interval)
                guard state.update({ $0.closing == nil }) else { return nil }
                let number = try state.update { try $0.ping(SocketReconnector.makePingPayload()) }
                try await withTimeout(configuration.pongTimeout, configuration.clock, throwing: WebSocketError.timedOut(.pong)) {
                    // While receiving is suspended, a pong can't be seen.
                    try await state.wait { $0.isReceivingSuspended ? .success(()) : $0.pongOutcome(forPing: number) }.get()
                }
            }
        } catch WebSocketError.timedOut(let stage) where state.update({ $0.closing == nil }) {
            return .failure(WebSocketError.timedOut(stage))
        } catch {
            return nil
        }
    }
}

extension FrameViolation {
    /// The error reported to the user.
    var error: WebSocketError {
        code == .messageTooBig ? .messageTooLarge(message: message) : .protocolViolation(code: code, message: message)
    }
}
