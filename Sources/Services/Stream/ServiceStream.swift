// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewWebSocket
import Dispatch

/// A WebSocket of a service, with typed messages in both directions.
///
/// It is opened by the first use of ``results``, or the first message sent. All readers share one connection, and each receives all
/// results that arrive after it was made. Backpressure follows the slowest reader: nothing is received while 16 results are queued for it,
/// nor while there are no readers; what arrived in the meantime, and what the last reader left unread, goes to the next reader.
///
/// It always ends with an error: the service's error for ``ServiceError/closedStream(code:)``, or for the failure of the connection.
/// Releasing the stream and all its readers closes the connection with ``WebSocketCloseCode/goingAway``. Thread-safe.
public final class ServiceStream<Request: ServiceStreamRequest, Service: HTTPService>: Sendable {
    /// The type of sent messages.
    public typealias Message = Request.Message
    /// The result of a received message, or the error of its decoding.
    public typealias Element = Result<Request.Result, Service.RequestError>
    /// The error that the stream fails with.
    public typealias Failure = Service.RequestError

    private typealias Socket = TypedWebSocket<Message, Request.Result>
    typealias Inbox = Watched<StreamInbox<Element, Failure>>

    private struct Running: Sendable {
        let socket: Socket
        let task: Task<Void, Never>
    }

    private let request: Request
    let service: Service
    private let inbox = Inbox(StreamInbox())
    private let running = Lock<Running?>(nil)
    private let isClosedByUser = Lock(false)

    init(request: Request, service: Service) {
        self.request = request
        self.service = service
    }

    deinit {
        running.withLock { $0?.task.cancel() }
    }

    // MARK: Receiving

    /// The results, as they are received; a message that can't be decoded yields a failure, and the stream continues.
    ///
    /// Throws the error that ends the stream, whichever the close code. When the awaiting task is cancelled, throws the service's error for
    /// ``ServiceError/cancelled``; other readers are not affected.
    public var results: Results { Results(stream: self) }

    /// The results of a stream.
    public struct Results: AsyncSequence, Sendable {
        /// The result of a message, or the error of its decoding.
        public typealias Element = ServiceStream.Element

        let stream: ServiceStream

        /// Awaits results. It reads from its creation until it is released.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let reader: Reader
            private var isFinished = false

            fileprivate init(_ reader: Reader) { self.reader = reader }

            /// Returns the next result; `nil` after an error was thrown.
            public mutating func next() async throws -> Element? {
                guard !isFinished else { return nil }
                do {
                    return try await reader.next()
                } catch {
                    isFinished = true
                    throw error
                }
            }
        }

        /// Makes a reader, and opens the stream if it is not open yet.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(Reader(stream)) }
    }

    /// A reader registered with the inbox.
    fileprivate final class Reader: Sendable {
        private let stream: ServiceStream
        private let number: Int

        init(_ stream: ServiceStream) {
            self.stream = stream
            number = stream.inbox.update { $0.addReader() }
            _ = stream.open()
        }

        deinit {
            stream.inbox.update { $0.removeReader(number) }
        }

        func next() async throws(Failure) -> Element {
            let number = number
            // Only cancellation of the awaiting task throws here.
            guard let next = try? await stream.inbox.wait(for: { $0.take(number) }) else { throw stream.service.mapError(.cancelled) }
            return try next.get()
        }
    }

    /// Calls closures with the results and the completion.
    ///
    /// - Parameters:
    ///   - queue: the queue they are called on, one call at a time; `nil`, the default, for the session's `callbackQueue`, which is `.main`
    ///     unless set.
    ///   - receiveCompletion: called once, last, with the error that ended the stream.
    ///   - receiveValue: called with each result.
    /// - Returns: the subscription, which ends when it is released: retain it.
    public func sink(
        on queue: DispatchQueue? = nil, receiveCompletion: @escaping @Sendable (ServiceCompletion<Failure>) -> Void,
        receiveValue: @escaping @Sendable (Element) -> Void
    ) -> ServiceSubscription {
        let queue = queue ?? service.sessionManager.session.configuration.callbackQueue
        let reader = Reader(self)
        let isCancelled = Lock(false)
        /// Calls a closure on the queue and waits for it; the flag is checked there, so that a subscription cancelled on the queue is never
        /// called afterwards.
        let call: @Sendable (@escaping @Sendable () -> Void) async -> Void = { body in
            await withCheckedContinuation { continuation in
                queue.async {
                    if !isCancelled.withLock({ $0 }) { body() }
                    continuation.resume()
                }
            }
        }
        let task = Task(priority: request.priority.taskPriority) {
            do throws(Failure) {
                while true {
                    let element = try await reader.next()
                    await call { receiveValue(element) }
                }
            } catch {
                await call { receiveCompletion(.failure(error)) }
            }
        }
        return ServiceSubscription {
            isCancelled.withLock { $0 = true }
            task.cancel()
        }
    }

    // MARK: Sending

    /// Sends a message, after those sent before; one sent before the connection is open is queued until it is.
    ///
    /// Returns when the message is queued and the send buffer is below its limit (``WebSocketConfiguration/sendBufferSize``).
    ///
    /// - Throws: the service's error for ``ServiceError/encodingFailed(_:)``, for ``ServiceError/closedStream(code:)``, or for the failure
    ///   of the connection.
    public func send(_ message: Message) async throws(Failure) {
        let socket = open()
        try await mapping { try await socket.send(message) }
    }

    /// Sends the messages of a sequence, in order, to its end; see ``send(_:)``.
    ///
    /// - Throws: the error of the sequence, or of sending, which ends the call; the stream itself stays open as long as its connection.
    public func send<Messages: AsyncSequence>(from messages: Messages) async throws where Messages.Element == Message {
        for try await message in messages { try await send(message) }
    }

    // MARK: The connection

    /// The underlying WebSocket, for pings, its state and its handshake; opens the stream if it is not open yet.
    ///
    /// Don't read its messages: the stream does.
    public var socket: WebSocket { open().socket }

    /// Closes the connection after the messages already sent, and waits until it is closed; see ``WebSocket/close(code:reason:)``.
    ///
    /// A stream that is not open yet is opened first.
    ///
    /// - Returns: the contents of the server's close frame.
    @discardableResult
    public func close(code: WebSocketCloseCode = .normalClosure, reason: String = "") async throws(Failure) -> WebSocketClosure {
        isClosedByUser.withLock { $0 = true }
        let socket = open().socket
        return try await mapping { try await socket.close(code: code, reason: reason) }
    }

    private func mapping<Value>(_ body: () async throws -> Value) async throws(Failure) -> Value {
        do { return try await body() } catch { throw service.mapError(ServiceError(error)) }
    }

    /// Returns the WebSocket, opening it on the first call.
    private func open() -> Socket {
        let manager = service.sessionManager
        return running.withLock { running in
            if let socket = running?.socket { return socket }
            let connection = Connection(request: request, service: service, inbox: inbox, isClosedByUser: isClosedByUser)
            let socket = connection.open(by: manager)
            running = Running(socket: socket, task: Task(priority: request.priority.taskPriority) { await connection.run(socket) })
            return socket
        }
    }
}

/// Runs a stream's connection. It holds no reference to the stream, so that releasing the stream closes the connection.
private struct Connection<Request: ServiceStreamRequest, Service: HTTPService>: Sendable {
    let request: Request
    let service: Service
    let inbox: ServiceStream<Request, Service>.Inbox
    let isClosedByUser: Lock<Bool>
    /// The request of the last handshake.
    private let urlRequest = Lock<URLRequest?>(nil)

    init(request: Request, service: Service, inbox: ServiceStream<Request, Service>.Inbox, isClosedByUser: Lock<Bool>) {
        self.request = request
        self.service = service
        self.inbox = inbox
        self.isClosedByUser = isClosedByUser
    }

    func open(by manager: SessionManager) -> TypedWebSocket<Request.Message, Request.Result> {
        var configuration = request.webSocketConfiguration
        if let timeout = request.timeout { configuration.handshakeTimeout = timeout }
        // This closure retains the request until the connection ends, but not the stream.
        let options = request.effectiveOptions(for: service)
        let socket = manager.webSocket(subprotocols: request.subprotocols, configuration: configuration, options: options) { [self] in
            let head = try await request.makeHead(for: service, .get, schemes: ("ws", "wss"))
            urlRequest.withLock { $0 = head }
            ServiceLog.stream(head)
            return head
        }
        return socket.typed(WebSocketCoding(encode: request.encode, decode: request.decode))
    }

    /// Reads the WebSocket to its end, and reports that end to the hook even if the stream has no readers.
    func run(_ socket: TypedWebSocket<Request.Message, Request.Result>) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await read(socket) }
            await watch(socket.socket)
        }
    }

    private func read(_ socket: TypedWebSocket<Request.Message, Request.Result>) async {
        let end: ServiceError
        do {
            var results = socket.results.makeAsyncIterator()
            while true {
                try await inbox.wait { $0.hasDemand ? () : nil }
                guard let result = try await results.next() else { break }
                let element = result.mapError { service.mapError(ServiceError($0)) }
                inbox.update { $0.receive(element) }
            }
            end = .closedStream(code: Int(try await socket.socket.waitUntilClosed().code.rawValue))
        } catch {
            end = ServiceError(error)
        }
        let failure = service.mapError(end.describing(urlRequest.withLock { $0 }))
        inbox.update { $0.finish(failure) }
    }

    private func watch(_ socket: WebSocket) async {
        let end: ServiceError
        do {
            end = .closedStream(code: Int(try await socket.waitUntilClosed().code.rawValue))
        } catch {
            end = ServiceError(error)
        }
        // A stream that the program closes or releases has not failed, so the hook is not called.
        guard !Task.isCancelled, !isClosedByUser.withLock({ $0 }) else { return }
        let urlRequest = urlRequest.withLock { $0 }
        let error = end.describing(urlRequest)
        ServiceLog.failure(urlRequest, error)
        await service.hook.onFailure(request, urlRequest, error: error)
    }
}
