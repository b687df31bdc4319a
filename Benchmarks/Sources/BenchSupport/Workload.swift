// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Synchronization

/// Hands out `count` requests to whoever is free, and adds up how they ended.
final class Workload: Sendable {
    private let unstarted: Atomic<Int>
    private let unfinished: Atomic<Int>
    private let failed = Atomic<Int>(0)
    private let bytes = Atomic<Int>(0)
    private let count: Int

    init(count: Int) {
        self.count = count
        unstarted = Atomic(count)
        unfinished = Atomic(count)
    }

    var tally: Tally {
        Tally(requests: count, failed: failed.load(ordering: .relaxed), bytes: bytes.load(ordering: .relaxed))
    }

    /// Whether the caller is to make one more request.
    func next() -> Bool {
        unstarted.wrappingSubtract(1, ordering: .relaxed).newValue >= 0
    }

    /// Counts a finished request; `true` for the last of all.
    @discardableResult
    func finish(_ result: Result<Int, any Error>) -> Bool {
        switch result {
        case .success(let count): bytes.wrappingAdd(count, ordering: .relaxed)
        case .failure(let error):
            // The first is enough to see what is wrong.
            if failed.wrappingAdd(1, ordering: .relaxed).oldValue == 0 { printError("\(error)") }
        }
        return unfinished.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }
}

extension BenchClient {
    /// `count` requests in the style that was asked for.
    func run(_ count: Int, _ options: Options) async -> Tally {
        let url = options.target
        switch options.style {
        case .handlers: return await runWithHandlers(count, options)
        case .object, .list: return await run(count, inFlight: options.inFlight) { try await decode(url) }
        case .data, .adapter, .headers, .options, .deadline, .awaited, .observed, .traced, .urls, .breaker, .limiter,
            .concurrency, .budget, .hedging, .coalescing, .leased, .urlrequest, .urlsession,
            .bytes:
            return await run(count, inFlight: options.inFlight) { try await get(url) }
        }
    }

    /// `count` requests with `await`, `inFlight` child tasks that each make one after the other.
    func run(_ count: Int, inFlight: Int, _ request: @escaping @Sendable () async throws -> Int) async -> Tally {
        let workload = Workload(count: count)
        let work = { @Sendable in
            while workload.next() {
                do {
                    workload.finish(.success(try await request()))
                } catch {
                    workload.finish(.failure(error))
                }
            }
        }
        let executor = executor
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<inFlight {
                // Without a preference, as tasks mostly are: to have none is not the same as to be asked for it at each step.
                if let executor { group.addTask(executorPreference: executor, operation: work) } else { group.addTask(operation: work) }
            }
        }
        return workload.tally
    }

    /// `count` requests with handlers: each handler starts the next request, so many such chains as are in flight.
    private func runWithHandlers(_ count: Int, _ options: Options) async -> Tally {
        let workload = Workload(count: count)
        await withCheckedContinuation { ended in
            for _ in 0..<min(options.inFlight, count) {
                startNext(workload, options.target) { ended.resume() }
            }
        }
        return workload.tally
    }

    private func startNext(_ workload: Workload, _ url: String, atEnd: @escaping @Sendable () -> Void) {
        guard workload.next() else { return }
        get(url) { result in
            if workload.finish(result) { return atEnd() }
            startNext(workload, url, atEnd: atEnd)
        }
    }
}
