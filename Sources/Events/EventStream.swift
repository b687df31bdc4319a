// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The events that a server sends (WHATWG HTML, section 9.2), across reconnections.
///
/// Created by ``CurlewCore/SessionManager/eventStream(_:configuration:interceptor:options:)``. The request is sent when iteration starts, and
/// backpressure limits what is received ahead of the reader to 1 MiB. When a response ends, or its connection is lost, the stream
/// reconnects with the last event's ID. The sequence ends with a status of 204, or when the stream is not to reconnect. When a reconnection
/// would not help, it throws ``EventStreamError``, which for a wrong status or content type contains the response's body, or
/// ``CurlewError``, as it does once a deadline has passed. The attempt of such an error (``FailedRequest/attempt``) counts all times that
/// the request was sent, over all connections. Releasing the iterator, or cancelling the task that iterates, cancels the request.
public struct EventStream: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let manager: SessionManager
    let request: Result<URLRequest, any Error>
    let configuration: EventStreamConfiguration
    let interceptor: (any RequestInterceptor)?
    let options: RequestOptions?
    /// That of the caller that has created the stream.
    let deadline: Deadline?

    /// Iterates over the events.
    public struct Iterator: AsyncIteratorProtocol {
        private let stream: EventStream
        private var connection: Connection?
        private var parser: ServerSentEventParser
        private var failures = 0
        /// The number of the connection, from 1; 0 once the last one was open.
        private var attempt = 0
        /// How often the request was sent on earlier connections.
        private var earlierAttempts = 0
        private var isFinished = false
        /// Bounds all connections and the waits between them; `nil` for none, where that of the calling task counts.
        private let ownDeadline: Deadline?

        private var deadline: Deadline? { ownDeadline ?? Deadline.current }

        init(_ stream: EventStream) {
            self.stream = stream
            let own = Deadline.earliest(stream.options?.deadline)
            ownDeadline = [own, stream.deadline].compactMap { $0 }.min()
            parser = stream.configuration.makeParser(lastEventID: stream.configuration.lastEventID)
        }

        /// The ID of the last event, with which a later stream can resume; empty for none.
        public var lastEventID: String { parser.lastEventID }

        /// Returns the next event; `nil` when the stream has ended for good.
        public mutating func next() async throws -> ServerSentEvent? {
            while !isFinished {
                do {
                    if let event = try parser.next() { return event }
                    if let piece = try await nextPiece() {
                        parser.feed(piece)
                    } else {
                        try await connectionCompleted(with: nil)
                    }
                } catch let error as EventStreamError {
                    isFinished = true
                    connection = nil
                    throw error
                } catch {
                    try await connectionCompleted(with: error)
                }
            }
            return nil
        }

        private mutating func nextPiece() async throws -> Data? {
            if connection == nil {
                attempt += 1
                stream.configuration.onChange?(.connecting(attempt: attempt))
                connection = try Deadline.with(ownDeadline) { try stream.connect(lastEventID: parser.lastEventID) }
            }
            guard var connection else { return nil }
            let piece = try await connection.portions.next(of: &connection.bytes)
            if !connection.isOpen, let head = connection.request.responseHead, head.statusCode == 200 {
                try head.requireEventStreamType()
                connection.isOpen = true
                opened(by: head)
            }
            self.connection = connection
            return piece
        }

        /// The server has responded with a stream of events.
        private mutating func opened(by head: ResponseHead) {
            (failures, attempt) = (0, 0)
            stream.configuration.onChange?(.open(head))
        }

        /// Handles the completion of a connection: waits until the next one is due, or ends the stream.
        private mutating func connectionCompleted(with error: (any Error)?) async throws {
            let head = connection?.request.responseHead
            let error = error.map { numbered($0) }
            let shownError = connection?.shown(error) ?? error
            let isOpen = connection?.isOpen ?? false
            if let connection { earlierAttempts += Int(connection.request.retryCount) + 1 }
            connection = nil
            // An event without a blank line after it is incomplete, and discarded.
            let time = parser.retry
            parser = stream.configuration.makeParser(lastEventID: parser.lastEventID, retry: time)
            guard head?.statusCode != 204 else { return isFinished = true }
            if let error, deadline?.hasPassed == true {
                isFinished = true
                throw shownError ?? error
            }
            // One that was lost before its first piece was open, too.
            if case CurlewError.transferFailed? = error, !isOpen, let head, head.statusCode == 200,
                (try? head.requireEventStreamType()) != nil
            {
                opened(by: head)
            }
            if error != nil { failures += 1 }
            let isRejected = if case CurlewError.responseValidationFailed? = error { true } else { false }
            let delay = stream.configuration.delay(serverTime: time, failures: failures, rejection: isRejected ? head : nil)
            guard let delay, stream.reconnects(after: error, status: head?.statusCode, failures: failures) else {
                isFinished = true
                if let shownError { throw shownError }
                return
            }
            stream.configuration.onChange?(.waiting(delay: delay, error: shownError))
            do {
                try await wait(delay)
            } catch {
                isFinished = true
                throw error
            }
        }

        /// Returns the error of a connection with the number of its attempt in the whole stream: each connection is a request of its own,
        /// whose attempts count from 1.
        private func numbered(_ error: any Error) -> any Error {
            guard let error = error as? CurlewError, let request = error.request, request.attempt > 0, earlierAttempts > 0 else {
                return error
            }
            let attempt = request.attempt + earlierAttempts
            guard case .transferFailed(let failure) = error, failure.kind == .deadline else {
                return error.describing(request.numbered(attempt))
            }
            return Deadline.failure(failure, attempt: UInt(attempt)).describing(request.numbered(attempt))
        }

        /// Waits for a reconnection.
        ///
        /// - Throws: ``CurlewError/cancelled``; the deadline's error once that has passed.
        private func wait(_ delay: Duration) async throws {
            let rest = deadline?.remaining
            do {
                try await stream.configuration.clock.sleep(for: rest.map { Swift.min($0, delay) } ?? delay)
            } catch {
                throw CurlewError.cancelled
            }
            guard let rest, rest <= delay else { return }
            let url = try stream.request.get().url?.absoluteString ?? ""
            throw Deadline.failure(of: url, attempt: UInt(earlierAttempts), during: .concluding)
        }
    }

    /// Creates an iterator, with connections of its own.
    public func makeAsyncIterator() -> Iterator {
        Iterator(self)
    }

    // MARK: Connections

    /// A response being read.
    private struct Connection {
        let request: DataRequest
        var bytes: BodyStream.Iterator
        var portions = Portions()
        var isOpen = false

        /// The error, with the response's body added if the response was rejected.
        func shown(_ error: (any Error)?) -> (any Error)? {
            guard let error = error as? CurlewError, case .responseValidationFailed = error, let head = request.responseHead else {
                return error
            }
            return EventStreamError.rejected(EventStreamRejection(response: head, body: error.request?.bodyData ?? Data(), error: error))
        }
    }

    private func connect(lastEventID: String) throws -> Connection {
        var urlRequest = try request.get()
        if urlRequest.value(forHTTPHeaderField: "Accept") == nil { urlRequest.setValue("text/event-stream", forHTTPHeaderField: "Accept") }
        if urlRequest.value(forHTTPHeaderField: "Cache-Control") == nil {
            urlRequest.setValue("no-store", forHTTPHeaderField: "Cache-Control")
        }
        let header = HTTPHeader(name: "Last-Event-ID", value: lastEventID)
        // An ID may contain characters that are not allowed in a header field.
        if !lastEventID.isEmpty, header.isValid { urlRequest.setValue(header.value, forHTTPHeaderField: header.name) }
        let request = manager.streamRequest(urlRequest, interceptor: interceptor, options: options)
            .validate(statusCode: [200]).validate(contentType: ["text/event-stream"])
        return Connection(request: request, bytes: request.bodyStream().makeAsyncIterator())
    }

    /// Whether the stream reconnects after a connection has ended or failed.
    private func reconnects(after error: (any Error)?, status: Int?, failures: Int) -> Bool {
        switch configuration.reconnection {
        case .never: return false
        case .automatic: if (try? request.get().httpMethod) ?? "GET" != "GET" { return false }
        case .always: break
        }
        guard let error else { return true }
        if let limit = configuration.reconnectionLimit, failures > limit { return false }
        switch error {
        case CurlewError.responseValidationFailed: return status.map { configuration.retryableStatusCodes.contains($0) } ?? false
        case CurlewError.transferFailed(let failure):
            return failure.isTimeout || [.nameResolution, .connect, .secureConnection, .connectionLost].contains(failure.kind)
        default: return false
        }
    }
}

extension ResponseHead {
    /// Checked here as well, because validation accepts any content type for an empty body, which would be requested again endlessly.
    fileprivate func requireEventStreamType() throws(CurlewError) {
        let wanted = "text/event-stream"
        let type = value(for: "Content-Type")?.mediaType.lowercased()
        guard let type else { throw .responseValidationFailed(reason: .missingContentType(acceptableContentTypes: [wanted])) }
        guard type == wanted else {
            throw .responseValidationFailed(
                reason: .unacceptableContentType(acceptableContentTypes: [wanted], responseContentType: type))
        }
    }
}

extension EventStreamConfiguration {
    fileprivate func makeParser(lastEventID: String, retry: Duration? = nil) -> ServerSentEventParser {
        ServerSentEventParser(lastEventID: lastEventID, maximumEventSize: maximumEventSize, retry: retry)
    }
}

// MARK: - CustomReflectable

extension EventStream: CustomReflectable {
    /// The request's method and redacted URL.
    public var customMirror: Mirror {
        let shown = request.map { "\($0.httpMethod ?? "GET") \(($0.url?.absoluteString ?? "").redactedURL)" }
        return .redacted(self, ["request": shown])
    }
}
