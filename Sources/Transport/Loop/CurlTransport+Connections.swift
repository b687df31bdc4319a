// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// The connections of a transport: looked at, opened ahead, closed.

/// A session's transport on libcurl: one of its own, or its part of a shared one.
package protocol EventLoopTransport: Transport {
    /// The session's connections at this moment.
    func connectionStatistics() async -> ConnectionStatistics
    /// Closes those of them that are idle, and returns their number.
    func closeIdleConnections() async -> Int
    /// Opens connections until `count` are idle: ``CurlTransport/prewarm(_:count:)``.
    func prewarm(_ request: TransferRequest, count: Int) async throws -> Int

    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    var taskExecutor: any TaskExecutor { get }
    @available(macOS 15.0, iOS 18.0, watchOS 11.0, tvOS 18.0, visionOS 2.0, *)
    var taskExecutors: [any TaskExecutor] { get }
}

extension CurlTransport: EventLoopTransport {
    private var connections: LoopConnections { LoopConnections(mailboxes: mailboxes, group: 0, limits: nil) }

    /// The connections at this moment: those of each loop in its own turn. Zero before the first transfer, and after the end.
    package func connectionStatistics() async -> ConnectionStatistics { await connections.statistics() }

    /// Closes the connections that are idle, and returns their number when they are closed.
    ///
    /// Those in use are closed by a later call, once they are idle. Beside connections in use, an idle TLS connection is ended without a
    /// `close_notify`, which its peer sees as an end between two responses.
    @discardableResult
    package func closeIdleConnections() async -> Int { await connections.closeIdle() }

    /// Opens connections to the origin of a request, until `count` are idle, and returns how many were opened.
    ///
    /// Name resolution, TCP, TLS and the proxy's tunnel; nothing of HTTP/1.1 is sent, and of HTTP/2 what begins a connection. No more than
    /// ``TransportConfiguration/maximumConnectionsPerHost``, of which those in use count; one, if transfers share it. Of the request, the URL
    /// and the options count.
    ///
    /// - Parameters:
    ///   - request: for the origin.
    ///   - count: the number of idle connections; with less than 1 nothing is done.
    /// - Throws: the error of the first connection that could not be opened; the others stay pooled.
    package func prewarm(_ request: TransferRequest, count: Int) async throws -> Int {
        try await connections.prewarm(request, count: count, over: self)
    }

    /// Lets each loop that runs evaluate `body`, in its turn.
    func visit<Result: Sendable>(_ body: @escaping @Sendable (EventLoopThread) -> Result) async -> [Result] {
        await connections.visit(body)
    }
}

/// The connections of one session on the loops of a transport.
struct LoopConnections {
    let mailboxes: [Mailbox]
    /// The number of their group.
    let group: Int
    /// The session's configuration; `nil` for the loops'.
    let limits: TransportConfiguration?

    func statistics() async -> ConnectionStatistics {
        var all = ConnectionStatistics()
        for statistics in await visit({ $0.connectionStatistics(ofGroup: group) }) { all.add(statistics) }
        return all
    }

    func closeIdle() async -> Int {
        await visit { $0.closeIdleConnections(ofGroup: group) }.reduce(0, +)
    }

    func prewarm(_ request: TransferRequest, count: Int, over transport: some Transport) async throws -> Int {
        let limits = limits ?? mailboxes[0].configuration
        let origin = HTTPOrigin(url: request.url)
        let existing = origin == nil ? nil : await statistics().origins[origin ?? HTTPOrigin(scheme: "", host: "", port: 0)]
        let counts = existing ?? ConnectionStatistics.Counts()
        let free = max(0, (limits.maximumConnectionsPerHost.map { max(1, $0) } ?? .max) - counts.busy)
        let missing = min(count, free) - counts.idle
        guard missing > 0 else { return 0 }
        var request = request
        request.opensConnectionOnly = true
        request.method = .get
        request.body = nil
        let first = await open(request, over: transport)
        if let error = first.error { throw error }
        let isSharing = limits.multiplexes ?? CurlInfo.current.hasReliableHTTP2
        guard missing > 1, !(first.isMultiplexed && isSharing) else { return first.isOpened ? 1 : 0 }
        let others = await withTaskGroup(of: OpeningObserver.Result.self) { [request] group in
            for _ in 1..<missing { group.addTask { await open(request, over: transport) } }
            var results: [OpeningObserver.Result] = []
            for await result in group { results.append(result) }
            return results
        }
        if let error = others.compactMap(\.error).first { throw error }
        return ([first] + others).count(where: \.isOpened)
    }

    private func open(_ request: TransferRequest, over transport: some Transport) async -> OpeningObserver.Result {
        let observer = OpeningObserver()
        let handle = transport.makeTransfer(request, id: 0, observer: observer)
        return await withTaskCancellationHandler {
            handle.start()
            return await observer.result
        } onCancel: {
            handle.cancel()
        }
    }

    /// Lets each loop that runs evaluate `body`, in its turn.
    func visit<Result: Sendable>(_ body: @escaping @Sendable (EventLoopThread) -> Result) async -> [Result] {
        var results: [Result] = []
        for mailbox in mailboxes {
            let result: Result? = await withCheckedContinuation { continuation in
                mailbox.post(.visit { loop in continuation.resume(returning: loop.map(body)) })
            }
            if let result { results.append(result) }
        }
        return results
    }
}

/// Waits for a connection that is opened ahead.
private final class OpeningObserver: TransferObserver {
    struct Result: Sendable {
        let error: (any Error)?
        let isMultiplexed: Bool
        /// Whether there is one: not if all of the host's were in use.
        let isOpened: Bool
    }

    private struct State {
        var result: Result?
        var waiter: CheckedContinuation<Result, Never>?
    }

    private let state = Lock(State())

    /// What has become of it; waits for that, once.
    var result: Result {
        get async {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state in
                    state.waiter = continuation
                    return state.result
                }
                if let result { continuation.resume(returning: result) }
            }
        }
    }

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .cancel }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .cancel }
    func transfer(_ id: Int, didSend count: Int64) {}

    func transfer(_ id: Int, didComplete completion: TransferCompletion) {
        let connection = completion.metrics.connection.values
        let result = Result(
            error: completion.error, isMultiplexed: connection.isMultiplexed,
            isOpened: completion.error == nil && connection.remoteAddress != nil)
        let waiter = state.withLock { state in
            state.result = result
            return state.waiter
        }
        waiter?.resume(returning: result)
    }
}
