// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport

/// One connection of a WebSocket, from its handshake to its end: tasks that read, write, and watch the time.
struct SocketConnection: Sendable {
    let stream: StreamRequest
    let state: Watched<SocketState>
    let configuration: WebSocketConfiguration
    let handshake: WebSocketHandshake
    let agreement: DeflateAgreement?
    /// What came behind the handshake.
    let rest: Data

    /// So much is written before it is looked again whether a ping or pong has to go before the rest.
    private static let writeSize = 256 << 10

    /// Serves the connection until it is over: the server's close frame, or why there was none.
    func serve() async -> Result<WebSocketClosure, any Error> {
        await withTaskGroup(of: Result<WebSocketClosure, any Error>?.self) { group in
            group.addTask { await receive() }
            group.addTask { await send() }
            group.addTask { await limitClosing() }
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
            let isTooLate = state.update { $0.isClosingTooLate }
            return .failure(isTooLate ? WebSocketError.timedOut(.close) : error)
        }
    }

    /// Reads up to the server's close frame.
    private func readMessages(from bytes: inout StreamBytes.Iterator) async throws -> WebSocketClosure {
        var reader = MessageReader(
            limits: .init(frame: configuration.maximumFrameSize, message: configuration.maximumMessageSize),
            inflater: agreement.map { MessageInflater($0) })
        reader.feed(rest)
        while true {
            while let event = try reader.next() {
                switch event {
                case .message(let message): try await deliver(message)
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

    /// Hands a message to whoever reads, and waits as long as there is no room for it.
    private func deliver(_ message: WebSocketMessage) async throws {
        try await state.wait { $0.receive(message) ? () : nil }
    }

    /// Waits, not for ever, until the messages that came before were read and answered: they were in order.
    private func waitForReader() async {
        try? await withTimeLimit(configuration.closeTimeout, configuration.clock, throwing: CurlewError.cancelled) {
            try await state.wait { $0.isAllRead || $0.closing != nil ? () : nil }
        }
    }

    /// Waits until our close frame has left and the server has ended the connection, as is its part (RFC 6455, section 7.1.1).
    private func waitForEnd(_ bytes: inout StreamBytes.Iterator) async {
        _ = try? await state.wait { $0.isSendingOver ? () : nil }
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
                    state.batchLeft(batch)
                    return if case .failed = state.closing { true } else { false }
                }
                guard batch.close != nil else { continue }
                // A server that breaks the rules need not know that it is its part to end the connection.
                if hasFailed { stream.closeWrite() }
                return nil
            }
        } catch {
            // Why the connection broke, the reader hears.
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

    /// Cuts the connection when its closing takes too long.
    private func limitClosing() async -> Result<WebSocketClosure, any Error>? {
        do {
            try await state.wait { $0.closing == nil ? nil : () }
            try await configuration.clock.sleep(for: configuration.closeTimeout)
        } catch {
            return nil
        }
        state.update { $0.closingTakesTooLong() }
        stream.cancel()
        return nil
    }

    /// Sends pings; returns when one is not answered.
    private func keepAlive(_ interval: Duration) async -> Result<WebSocketClosure, any Error>? {
        do {
            while true {
                try await configuration.clock.sleep(for: interval)
                guard state.update({ $0.closing == nil }) else { return nil }
                let number = try state.update { try $0.ping(SocketDriver.makePingPayload()) }
                try await withTimeLimit(configuration.pongTimeout, configuration.clock, throwing: WebSocketError.timedOut(.pong)) {
                    // As long as nobody reads, the pong can't be seen.
                    try await state.wait { $0.isReceivingHeld ? .success(()) : $0.answer(toPing: number) }.get()
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
    /// What users are told.
    var error: WebSocketError {
        code == .messageTooBig ? .messageTooLarge(message: message) : .protocolViolation(code: code, message: message)
    }
}
