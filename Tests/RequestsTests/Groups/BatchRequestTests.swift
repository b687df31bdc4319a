// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1))) struct BatchRequestTests {
    let stage: GroupStage

    init() throws {
        stage = try GroupStage()
    }

    private func make(_ paths: String..., log: GroupLog? = nil) -> BatchRequest {
        let batch = BatchRequest(requestArray: paths.map { stage.request($0) })
        if let log {
            batch.delegate = log
            batch.addAccessory(log)
            batch.setCompletionBlock(success: { _ in log.note("success") }, failure: { _ in log.note("failure") })
        }
        return batch
    }

    @Test func `it succeeds when all requests have, with results in their order`() async throws {
        let log = GroupLog()
        let batch = make("a", "b", "c", "d", log: log)
        #expect(await run(batch) == .succeeded)
        #expect(log.all == ["willStart @caller", "willStop", "finished", "success", "didStop"])
        #expect(batch.requestArray.map(\.answeredPath) == ["/a", "/b", "/c", "/d"])
        #expect(batch.failedRequest == nil && !batch.isExecuting && !batch.isDataFromCache)
    }

    @Test func `the first failure ends it and stops the others`() async throws {
        let log = GroupLog()
        let batch = make("held", "bad", "held", log: log)
        let told = Lock(0)
        for request in batch.requestArray { request.addAccessory(RequestEventAccessory(didStop: { _ in told.withLock { $0 += 1 } })) }
        #expect(await run(batch) == .failed)
        #expect(log.all == ["willStart @caller", "willStop", "failed", "failure", "didStop"])
        #expect(batch.failedRequest === batch.requestArray[1])
        #expect(batch.requestArray.map(\.isCancelled) == [true, false, true])
        // Each request's accessories are notified once, including those of the failed request.
        #expect(told.withLock { $0 } == 3)
        stage.gate.open()
    }

    @Test func `it may continue after failures`() async throws {
        let log = GroupLog()
        let batch = make("bad1", "a", "bad2", log: log)
        batch.stoppedOnFailure = false
        #expect(await run(batch) == .failed)
        #expect(log.all == ["willStart @caller", "willStop", "failed", "failure", "didStop"])
        #expect(batch.failedRequestArray.count == 2 && batch.requestArray[1].answeredPath == "/a")
        let results = await batch.results()
        #expect(results.map { (try? $0.get()) != nil } == [false, true, false])
    }

    @Test func `a request stopped individually fails it or is skipped`() async throws {
        let batch = make("held", "a")
        batch.stoppedOnFailure = false
        let results = await withTaskGroup(of: [Result<BaseRequest, any Error>].self) { group in
            group.addTask { await batch.results() }
            _ = await stage.stage.server.waitForRequests(2)
            batch.requestArray[0].stop()
            stage.gate.open()
            return await group.next() ?? []
        }
        #expect(results.count == 2 && (try? results[1].get()) != nil)
        #expect(throws: CancellationError.self) { try results[0].get() }
    }

    @Test func `without requests it succeeds and is released`() async throws {
        let log = GroupLog()
        weak var kept: BatchRequest?
        do {
            let batch = make(log: log)
            batch.agent = stage.stage.agent
            kept = batch
            #expect(await run(batch) == .succeeded)
        }
        #expect(await eventually { kept == nil })
        #expect(log.all == ["willStart @caller", "willStop", "finished", "success", "didStop"])
    }

    @Test func `a stop notifies only the accessories and stops all requests`() async throws {
        let log = GroupLog()
        let batch = make("held", "held", log: log)
        batch.start()
        // A second start of a running batch has no effect.
        batch.start()
        #expect(await stage.stage.server.waitForRequests(2))
        #expect(RequestGroupAgent.shared.batchRequests.contains { $0 === batch })
        batch.stop()
        stage.gate.open()
        await stage.stage.settle()
        #expect(log.log.all == ["willStart @caller", "willStop @caller", "didStop @caller"])
        #expect(batch.isCancelled && batch.requestArray.allSatisfy { $0.isCancelled })
        #expect(!RequestGroupAgent.shared.batchRequests.contains { $0 === batch })
        #expect(stage.asked.count == 2)
    }

    @Test func `a stop in its own callback is its end for those who await it, and the failure of its chain`() async throws {
        let batch = make("a")
        batch.successCompletionBlock = { $0.stop() }
        await #expect(throws: CancellationError.self) { try await batch.responses() }
        #expect(batch.isCancelled && batch.requestArray[0].isFinished)
        let chain = ChainRequest()
        batch.successCompletionBlock = { $0.stop() }
        chain.addBatch(batch)
        chain.addRequest(stage.request("b"))
        #expect(await run(chain) == .failed)
        #expect(chain.failedStep?.batch === batch && stage.asked == ["a", "a"])
    }

    @Test func `it replaces its requests' delegates and blocks`() async throws {
        let request = stage.request("a")
        let log = GroupLog()
        request.successCompletionBlock = { _ in log.note("own") }
        #expect(await run(BatchRequest(requestArray: [request])) == .succeeded)
        #expect(log.all.isEmpty)
    }

    @Test func `it may be started again in its own block`() async throws {
        let batch = make("a", "b")
        let counted = Lock(0)
        let ending = await withTrackedContinuation { (continuation: TrackedContinuation<RequestEnding>) in
            batch.startWithCompletionBlock(success: { batch in
                counted.withLock { $0 += 1 }
                batch.setCompletionBlock(success: { _ in counted.withLock { $0 += 1 } }, failure: nil)
                batch.start { continuation.resume(returning: $0) }
            })
        }
        #expect(ending == .succeeded)
        #expect(counted.withLock { $0 } == 2)
    }

    @Test func `blocks of a start run once each, and a completion on success and failure`() async throws {
        let log = GroupLog()
        let batch = make("a")
        await withTrackedContinuation { continuation in
            batch.start(
                willStart: { _ in log.note("willStart") }, willStop: { _ in log.note("willStop") },
                success: { _ in log.note("success") }, failure: { _ in log.note("failure") },
                didStop: { _ in
                    log.note("didStop")
                    continuation.resume()
                })
        }
        #expect(log.all == ["willStart @caller", "willStop", "success", "didStop"])
        let failing = make("bad")
        await withTrackedContinuation { continuation in
            failing.startWithCompletion { _ in continuation.resume() }
        }
        #expect(failing.failedRequest != nil)
    }

    @Test func `blocks may be set individually and are released at the end`() async throws {
        let log = GroupLog()
        let batch = make("a")
        batch.successCompletionBlock = { _ in log.note("success") }
        batch.failureCompletionBlock = { _ in log.note("failure") }
        batch.successCompletionBlock?(batch)
        #expect(await run(batch) == .succeeded)
        #expect(batch.successCompletionBlock == nil && batch.failureCompletionBlock == nil)
        await withTrackedContinuation { continuation in
            make("bad").startSynchronously(
                success: { _ in log.note("wrong") },
                failure: { batch in
                    log.note("failure \(batch.failedRequest?.responseStatusCode ?? 0)")
                    continuation.resume()
                })
        }
        #expect(log.all == ["success @caller", "success", "failure 500"])
    }

    @Test func `responses are awaited and errors thrown`() async throws {
        let responses = try await make("a", "b").responses()
        #expect(responses.map(\.answeredPath) == ["/a", "/b"])
        await #expect(throws: RequestValidationError.invalidStatusCode(500)) { try await make("a", "bad").responses() }
    }

    @Test func `cancelling the task stops the batch`() async throws {
        let batch = make("held", "held")
        let task = Task { try await batch.responses() }
        #expect(await stage.stage.server.waitForRequests(2))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(batch.requestArray.allSatisfy { $0.isCancelled })
        stage.gate.open()
    }

    @Test func `synchronous starts run in turn, without those that are filtered out`() async throws {
        let log = GroupLog()
        await withTrackedContinuation { continuation in
            make("a", "b").startSynchronously(completion: { _ in log.note("first") })
            make("x").startSynchronously(filter: { false }, completion: { _ in log.note("left out") })
            let chain = ChainRequest()
            chain.addRequest(stage.request("c"))
            chain.startSynchronously(completion: { _ in continuation.resume() })
        }
        #expect(log.all == ["first"])
        #expect(Set(stage.asked.prefix(2)) == ["a", "b"] && stage.asked.last == "c")
    }

    @Test func `groups are found and cancelled by tag`() async throws {
        let (batch, other) = (make("held1"), make("held2"))
        batch.tag = 1_000_001
        batch.start()
        other.start()
        #expect(await stage.stage.server.waitForRequests(2))
        RequestGroupAgent.shared.cancel(tag: 1_000_001)
        #expect(batch.isCancelled && !other.isCancelled)
        other.stop()
        stage.gate.open()
    }

    @Test func `it is from the cache if all its responses are`() async throws {
        let cached = try CacheStage()
        #expect(await run(BatchRequest(requestArray: [CachedSample(cached), CachedSample(cached, "other")])) == .succeeded)
        let batch = BatchRequest(requestArray: [CachedSample(cached), CachedSample(cached, "other")])
        #expect(await run(batch) == .succeeded)
        #expect(batch.isDataFromCache && cached.count == 2)
    }
}
