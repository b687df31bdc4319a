// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewWebSocket
import Dispatch

/// A WebSocket of a service: typed messages in both directions.
///
/// It is opened when somebody first wants ``results``, or sends. There is one connection however many read it, and all of them get the same
/// results from then on. The slowest sets the pace: nothing is received while 16 results wait for one of them, and while nobody reads;
/// what came meanwhile, and what the last reader has left, is the next one's.
///
/// It never ends by itself but with the service's error for ``ServiceError/closedStream(code:)``, or for why there is no connection. Letting
/// go of it and of all who read closes the connection with ``WebSocketCloseCode/goingAway``. All members may be used from any thread.
public final class ServiceStream<Request: ServiceStreamRequest, Service: HTTPService>: Sendable {
    /// What is sent.
    public typealias Message = Request.Message
    /// A message of the server's, or why it has no result.
    public typealias Element = Result<Request.Result, Service.RequestError>
    /// What it fails with.
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

    /// The results, as they come; a message that has none is a failure in its place, and the stream goes on.
    ///
    /// Throws what the stream ends with, for every close code. Cancelling the task that waits ends its interest with the service's error for
    /// ``ServiceError/cancelled``, and nothing else.
    public var results: Results { Results(stream: self) }

    /// The results of a stream.
    public struct Results: AsyncSequence, Sendable {
        /// A result, or why a message has none.
        public typealias Element = ServiceStream.Element

        let stream: ServiceStream

        /// Waits for results. It reads from when it is made until it is let go.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let reader: Reader
            private var isOver = false

            fileprivate init(_ reader: Reader) { self.reader = reader }

            /// The next result; `nil` behind an error.
            public mutating func next() async throws -> Element? {
                guard !isOver else { return nil }
                do {
                    return try await reader.next()
                } catch {
                    isOver = true
                    throw error
                }
            }
        }

        /// Begins to read, and opens the stream if nobody did before.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(Reader(stream)) }
    }

    /// Somebody's place at the inbox.
    fileprivate final class Reader: Sendable {
        private let stream: ServiceStream
        private let number: Int

        init(_ stream: ServiceStream) {
            self.stream = stream
            number = stream.inbox.update { $0.enter() }
            _ = stream.open()
        }

        deinit {
            stream.inbox.update { $0.leave(number) }
        }

        func next() async throws(Failure) -> Element {
            let number = number
            // Only cancellation of the task that waits throws here.
            guard let next = try? await stream.inbox.wait(for: { $0.take(number) }) else { throw stream.service.mapError(.cancelled) }
            return try next.get()
        }
    }

    /// Has closures called with the results and the end.
    ///
    /// - Parameters:
    ///   - queue: where they are called, one after the other; `nil`, the default, for the session's `callbackQueue`, which is `.main` unless
    ///     set.
    ///   - receiveCompletion: called once, last, with why the stream is over.
    ///   - receiveValue: called with each result.
    /// - Returns: the interest; keep it as long as that lasts.
    public func sink(
        on queue: DispatchQueue? = nil, receiveCompletion: @escaping @Sendable (ServiceCompletion<Failure>) -> Void,
        receiveValue: @escaping @Sendable (Element) -> Void
    ) -> ServiceSubscription {
        let queue = queue ?? service.sessionManager.session.configuration.callbackQueue
        let reader = Reader(self)
        let isCancelled = Lock(false)
        /// Calls on the queue and waits for that; who has cancelled there is not called any more.
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

    /// Sends a message, behind those sent before; one sent before the connection stands is kept until then.
    ///
    /// Returns when the message was taken to be sent and not too much else waits (``WebSocketConfiguration/sendBufferSize``).
    ///
    /// - Throws: the service's error for ``ServiceError/encodingFailed(_:)``, for ``ServiceError/closedStream(code:)``, or for why there is no
    ///   connection.
    public func send(_ message: Message) async throws(Failure) {
        let socket = open()
        try await mapping { try await socket.send(message) }
    }

    /// Sends messages as they come, to the last, in their order; see ``send(_:)``.
    ///
    /// - Throws: what the sequence throws, and what sending throws, which ends it; the stream stands as long as its connection does.
    public func send<Messages: AsyncSequence>(from messages: Messages) async throws where Messages.Element == Message {
        for try await message in messages { try await send(message) }
    }

    // MARK: The connection

    /// The WebSocket below, for pings, its state and its handshake; opens the stream if nobody did before.
    ///
    /// Its messages are the stream's to read.
    public var socket: WebSocket { open().socket }

    /// Closes the connection behind what was sent, and waits until it is over; see ``WebSocket/close(code:reason:)``.
    ///
    /// A stream that was not opened is opened for it.
    ///
    /// - Returns: what the server's close frame says.
    @discardableResult
    public func close(code: WebSocketCloseCode = .normalClosure, reason: String = "") async throws(Failure) -> WebSocketClosure {
        isClosedByUser.withLock { $0 = true }
        let socket = open().socket
        return try await mapping { try await socket.close(code: code, reason: reason) }
    }

    private func mapping<Value>(_ body: () async throws -> Value) async throws(Failure) -> Value {
        do { return try await body() } catch { throw service.mapError(ServiceError(error)) }
    }

    /// The WebSocket, which is opened by the first who comes.
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

/// What runs a stream; knows nothing of it, so that letting go of it ends the connection.
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
        // The request is kept until the connection ends; the stream is not.
        let socket = manager.webSocket(subprotocols: request.subprotocols, configuration: configuration) { [self] in
            let head = try await request.makeHead(for: service, .get, schemes: ("ws", "wss"))
            urlRequest.withLock { $0 = head }
            ServiceLog.stream(head)
            return head
        }
        return socket.typed(WebSocketCoding(encode: request.encode, decode: request.decode))
    }

    /// Reads the WebSocket to its end, and sees to it that the hook is told, be it that nobody reads.
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
                try await inbox.wait { $0.wantsMore ? () : nil }
                guard let result = try await results.next() else { break }
                let element = result.mapError { service.mapError(ServiceError($0)) }
                inbox.update { $0.receive(element) }
            }
            end = .closedStream(code: Int(try await socket.socket.waitUntilClosed().code.rawValue))
        } catch {
            end = ServiceError(error)
        }
        let failure = service.mapError(end)
        inbox.update { $0.finish(failure) }
    }

    private func watch(_ socket: WebSocket) async {
        let end: ServiceError
        do {
            end = .closedStream(code: Int(try await socket.waitUntilClosed().code.rawValue))
        } catch {
            end = ServiceError(error)
        }
        // Who closes or lets go knows of it.
        guard !Task.isCancelled, !isClosedByUser.withLock({ $0 }) else { return }
        let urlRequest = urlRequest.withLock { $0 }
        ServiceLog.failure(urlRequest, end)
        await service.hook.onFailure(request, urlRequest, error: end)
    }
}
