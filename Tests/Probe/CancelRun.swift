// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch

/// Cancels many requests at each stage of a request's life, a hundred at a time, and counts what remains of them.
///
/// Each batch is known to have reached its stage before it is cancelled: by an event of each request, or by the completion of another
/// request made after them.
final class CancelRun: Sendable {
    enum Stage: String, CaseIterable {
        case unstarted, queued, resolving, connecting, securing, head, body, retry, handler
    }

    private static let batch = 100

    private let url: String
    private let count: Int
    private let fullPort: String
    private let silentPort: String
    private let ledger = Ledger()
    private let cancelled = Lock(0)

    /// - Parameter url: of a server that responds to `/bytes/1` and `/status/503`, never responds to `/silent`, and only partly to
    ///   `/partial`. The environment names ports on which connections do not complete or are never read; names below `slow.test` take long
    ///   to resolve.
    init(url: String, count: Int, environment: [String: String]) {
        self.url = url
        self.count = count
        fullPort = environment["CURLEW_PROBE_FULL_PORT"] ?? ""
        silentPort = environment["CURLEW_PROBE_SILENT_PORT"] ?? ""
    }

    func run() async throws {
        // A warm-up, so that objects the process creates once and keeps exist before anything is counted.
        for stage in Stage.allCases { try await run(stage, count: Self.batch) }
        ledger.begin()
        for stage in Stage.allCases {
            let (start, before) = (ContinuousClock.now, cancelled.withLock { $0 })
            try await run(stage, count: count)
            let seconds = start.duration(to: .now) / .seconds(1)
            Probe.report("\(stage.rawValue)", cancelled.withLock { $0 } - before)
            Probe.report("\(stage.rawValue)PerSecond", Int(Double(count) / seconds))
        }
        ledger.report()
    }

    private func run(_ stage: Stage, count: Int) async throws {
        var configuration = Probe.makeConfiguration()
        configuration.callbackQueue = ledger.queue
        configuration.maximumConnectionsPerHost = stage == .queued ? 1 : nil
        let manager = SessionManager(configuration: configuration)
        ledger.watch(manager, manager.session)
        for first in stride(from: 0, to: count, by: Self.batch) {
            let size = min(Self.batch, count - first)
            let gate = Gate()
            let requests = makeRequests(stage, size, manager, gate)
            try await arrive(at: stage, size, manager, gate)
            for request in requests { request.cancel() }
            await ledger.handlersEnd()
        }
    }

    private func makeRequests(_ stage: Stage, _ size: Int, _ manager: SessionManager, _ gate: Gate) -> [DataRequest] {
        switch stage {
        case .unstarted: manager.startRequestsImmediately = false
        case .retry: manager.retrier = GatedRetrier(gate: gate)
        default: break
        }
        return (0..<size).map { _ in
            let request = makeRequest(stage, manager, gate)
            ledger.watch(request)
            let handler = ledger.expectHandler()
            return request.response { [weak request, cancelled] response in
                if stage == .handler {
                    request?.cancel()
                    gate.arrive()
                }
                // A response that has already been received is kept.
                let isExpected = stage == .handler ? response.error == nil : (response.error as? CurlewError).isCancelled
                if isExpected { cancelled.withLock { $0 += 1 } }
                handler()
            }
        }
    }

    private func makeRequest(_ stage: Stage, _ manager: SessionManager, _ gate: Gate) -> DataRequest {
        switch stage {
        case .unstarted, .handler: manager.request(url + "/bytes/1")
        case .queued: manager.request(url + "/silent")
        case .resolving: manager.request("http://curlew.slow.test/")
        case .connecting: manager.request("http://127.0.0.1:\(fullPort)/")
        case .securing: manager.request("https://127.0.0.1:\(silentPort)/")
        case .head:
            manager.upload(Data(count: 10), to: url + "/silent")
                .uploadProgress(queue: ledger.queue) { if $0.isFinished { gate.arrive() } }
        case .body: manager.request(url + "/partial").downloadProgress(queue: ledger.queue) { _ in gate.arrive() }
        case .retry: manager.request(url + "/status/503").validate()
        }
    }

    /// Waits until all requests have reached the stage.
    private func arrive(at stage: Stage, _ size: Int, _ manager: SessionManager, _ gate: Gate) async throws {
        switch stage {
        case .unstarted: break
        case .queued, .resolving, .connecting, .securing:
            // The event loop works in order, and a request to another host takes more turns than reaching these stages.
            _ = try await manager.request(url.replacingOccurrences(of: "127.0.0.1", with: "localhost") + "/bytes/1").serializingData().value
        case .head, .body, .retry, .handler:
            guard await gate.arrivals(size) else { throw Late(stage: stage) }
        }
    }

    private struct Late: Error {
        let stage: Stage
    }
}

extension CurlewError? {
    fileprivate var isCancelled: Bool {
        if case .cancelled = self { true } else { false }
    }
}

/// Requests a retry after longer than the process lives, and reports when it was called.
private struct GatedRetrier: RequestRetrier {
    let gate: Gate

    func should(_ manager: SessionManager, retry request: Request, with error: any Error, completion: @escaping RequestRetryCompletion) {
        completion(true, 600)
        gate.arrive()
    }
}
