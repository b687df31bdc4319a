// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// The interim responses of a request, and what receives them. Behind its driver's lock; empty for most requests.
struct InterimResponses {
    /// Those of all exchanges in the order received, for receivers that are added later.
    private(set) var received: [ResponseHead] = []
    private var receivers: [InterimReceiver] = []

    /// Notes a response, of which the last ones are kept, up to a limit: a request may be retried without end.
    ///
    /// - Returns: what receives it, after unlocking.
    mutating func receive(_ head: ResponseHead, keeping limit: Int) -> [InterimReceiver] {
        received.append(head)
        if received.count > limit { received.removeFirst() }
        return receivers
    }

    /// Adds a receiver, which begins with those received so far. Only those of an unfinished request have a receiver later.
    mutating func add(_ receiver: InterimReceiver, hasFinished: Bool) {
        for head in received { receiver.receive(head) }
        if hasFinished { receiver.finish() } else { receivers.append(receiver) }
    }

    /// The request has finished. Returns the receivers, to be finished and released after unlocking.
    mutating func finish() -> [InterimReceiver] {
        guard !receivers.isEmpty else { return [] }
        defer { receivers = [] }
        return receivers
    }
}

/// Receives the interim responses of a request.
enum InterimReceiver: Sendable {
    case handler(InterimHandler)
    case sequence(AsyncStream<ResponseHead>.Continuation)
    /// Called at once, on the transport's thread and perhaps inside of the driver's lock.
    case call(@Sendable (ResponseHead) -> Void)

    func receive(_ head: ResponseHead) {
        switch self {
        case .handler(let handler): handler.receive(head)
        case .sequence(let continuation): continuation.yield(head)
        case .call(let call): call(head)
        }
    }

    func finish() {
        if case .sequence(let continuation) = self { continuation.finish() }
    }
}

/// Calls a closure on its queue, which may be concurrent, for one response after the other.
final class InterimHandler: Sendable {
    private struct State {
        var waiting: [ResponseHead] = []
        var isCallPending = false
    }

    private let queue: DispatchQueue
    private let handler: @Sendable (ResponseHead) -> Void
    private let state = Lock(State())

    init(queue: DispatchQueue, handler: @escaping @Sendable (ResponseHead) -> Void) {
        self.queue = queue
        self.handler = handler
    }

    func receive(_ head: ResponseHead) {
        let mustCall = state.withLock { state in
            state.waiting.append(head)
            defer { state.isCallPending = true }
            return !state.isCallPending
        }
        if mustCall { queue.async { self.call() } }
    }

    private func call() {
        while let head = next() { handler(head) }
    }

    private func next() -> ResponseHead? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isCallPending = false
                return nil
            }
            return state.waiting.removeFirst()
        }
    }
}

// MARK: - The events

extension RequestDriver {
    func transfer(_ id: Int, didReceiveInterim head: ResponseHead) {
        let limit = session.configuration.maximumInterimResponses
        let (request, receivers) = state.withLock { state -> (Request?, [InterimReceiver]) in
            guard state.number == id, let request = state.request else { return (nil, []) }
            return (request, state.interim.receive(head, keeping: limit))
        }
        guard let request else { return }
        if session.isMonitored(.responses) {
            session.notifyMonitors(of: request, .responses) { $0.request(request, didReceiveInterim: head) }
        }
        for receiver in receivers { receiver.receive(head) }
    }

    fileprivate func add(_ receiver: InterimReceiver) {
        state.withLock { $0.interim.add(receiver, hasFinished: $0.lifecycle.stage == .finished) }
    }
}

// MARK: - For users

extension Request {
    /// Calls `handler` for each interim response of the request (1xx; RFC 9110, section 15.2) as it is received, such as `103 Early Hints`
    /// (RFC 8297) or the `104` of a resumable upload: before the final response, and also if there is none.
    ///
    /// Those of all exchanges, in the order received: of redirects, authenticated retries and retries, too. Those received before the call
    /// are handed over first; of a request with more exchanges, the last ``SessionConfiguration/maximumInterimResponses`` are kept for that.
    /// `100 Continue` is not among them, nor is `101 Switching Protocols`, which is final. A response from the cache has none.
    ///
    /// A request may have several handlers. Each is called for one response at a time, and released when the request has finished. On the
    /// serial queue of the response's handlers it is called before them. The request does not wait for it.
    ///
    /// - Parameters:
    ///   - queue: where the handler is called; `nil`, the default, is the configuration's ``SessionConfiguration/callbackQueue``.
    ///   - handler: receives the head of the interim response.
    @preconcurrency @discardableResult
    public func onInterimResponse(on queue: DispatchQueue? = nil, perform handler: @escaping @Sendable (ResponseHead) -> Void) -> Self {
        driver.add(.handler(InterimHandler(queue: queue ?? session.configuration.callbackQueue, handler: handler)))
        return self
    }

    /// Calls a closure with each interim response at once, before anything of the final one is reported. It must not block, nor call the
    /// request.
    package func noteInterimResponses(_ note: @escaping @Sendable (ResponseHead) -> Void) { driver.add(.call(note)) }

    /// The interim responses of the request, as ``onInterimResponse(on:perform:)`` hands them over, while they are received.
    ///
    /// Each access returns a sequence of its own, which begins with those received so far, and ends when the request has finished, however
    /// that was. Those that are not read yet are kept. Releasing the sequence, or cancelling the task that reads it, does not cancel the
    /// request. Reading it does not count as awaiting the response: a request that has no handler either finishes 100 ms after its completion.
    public var interimResponses: AsyncStream<ResponseHead> {
        let (stream, continuation) = AsyncStream.makeStream(of: ResponseHead.self)
        driver.add(.sequence(continuation))
        return stream
    }
}
