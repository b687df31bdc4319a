// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewRequests

@Suite(.timeLimit(.minutes(1))) struct ChainRequestTests {
    let stage: GroupStage

    init() throws {
        stage = try GroupStage()
    }

    private func make(_ paths: String..., log: GroupLog? = nil) -> ChainRequest {
        let chain = ChainRequest()
        for path in paths { chain.addRequest(stage.request(path)) { _, _ in log?.note(path) } }
        if let log {
            chain.delegate = log
            chain.addAccessory(log)
            chain.setCompletionBlock(success: { _ in log.note("success") }, failure: { _ in log.note("failure") })
        }
        return chain
    }

    @Test func `steps run in sequence, each callback before the next step`() async throws {
        let log = GroupLog()
        let chain = make("a", "b", log: log)
        chain.requestArray[1].addAccessory(RequestEventAccessory(willStart: { _ in log.note("start b") }))
        #expect(await run(chain) == .succeeded)
        #expect(log.all == ["willStart @caller", "a", "start b", "b", "willStop", "finished", "success", "didStop"])
        #expect(stage.asked == ["a", "b"])
        #expect(chain.succeedRequest === chain.requestArray[1] && chain.failedStep == nil)
    }

    @Test func `a step may be a batch that depends on earlier results: A, then B and C, then D`() async throws {
        let chain = ChainRequest()
        chain.addRequest(stage.request("a")) { [stage] chain, first in
            let name = first.answeredPath ?? ""
            let batch = BatchRequest(requestArray: stage.requests("b?\(name)", "c?\(name)"))
            chain.addBatch(batch) { chain, batch in
                let names = batch.requestArray.map { $0.answeredPath ?? "" }.joined(separator: "+")
                chain.addRequest(stage.request("d?\(names)"))
            }
        }
        let last = try await chain.response()
        #expect(last?.request?.answeredPath?.hasPrefix("/d") == true)
        let asked = stage.asked
        #expect(asked.count == 4 && asked[0] == "a" && asked[3].hasPrefix("d"))
        #expect(Set(asked[1...2].map { $0.prefix(1) }) == ["b", "c"])
    }

    @Test func `a chain may be a step`() async throws {
        let chain = ChainRequest()
        chain.addStep(.chain(make("a", "b")))
        chain.addRequest(stage.request("c"))
        #expect(await run(chain) == .succeeded)
        #expect(stage.asked == ["a", "b", "c"])
    }

    @Test func `a failure ends it`() async throws {
        let log = GroupLog()
        let chain = make("a", "bad", "c", log: log)
        #expect(await run(chain) == .failed)
        #expect(log.all == ["willStart @caller", "a", "willStop", "failed", "failure", "didStop"])
        #expect(chain.failedRequest === chain.requestArray[1])
        await #expect(throws: RequestValidationError.invalidStatusCode(500)) { try await make("bad").response() }
    }

    @Test func `it may continue after failures and ends like its last step`() async throws {
        let chain = make("bad", "a")
        chain.stoppedOnFailure = false
        #expect(await run(chain) == .succeeded)
        #expect(chain.failedRequest === chain.requestArray[0] && chain.succeedRequest === chain.requestArray[1])
        let other = make("a", "bad")
        other.stoppedOnFailure = false
        #expect(await run(other) == .failed)
    }

    @Test func `a success may end it, so that other steps are for failures only`() async throws {
        let chain = make("bad", "a", "never")
        chain.stoppedOnFailure = false
        chain.stoppedOnSuccess = true
        #expect(await run(chain) == .succeeded)
        #expect(stage.asked == ["bad", "a"])
    }

    @Test func `the builder makes further steps, after the interval`() async throws {
        let chain = make("a")
        chain.requestInterval = 5
        chain.requestBuilder = { [stage] _, last in
            switch last?.request?.answeredPath {
            case "/a": .request(stage.request("b"))
            case "/b": .request(stage.request("c"))
            default: nil
            }
        }
        #expect(await run(chain) == .succeeded)
        #expect(stage.asked == ["a", "b", "c"])
        #expect(stage.stage.delays.all == [5, 5])
    }

    @Test func `without steps it succeeds`() async throws {
        let chain = ChainRequest()
        chain.agent = stage.stage.agent
        #expect(try await chain.response() == nil)
        chain.requestBuilder = { [stage] _, last in last == nil ? .request(stage.request("built")) : nil }
        #expect(try await chain.response()?.request?.answeredPath == "/built")
    }

    @Test func `a stop notifies only the accessories, and no step follows`() async throws {
        let log = GroupLog()
        let chain = make("held", "b", log: log)
        chain.start()
        #expect(await stage.stage.server.waitForRequests(1))
        #expect(RequestGroupAgent.shared.chainRequests.contains { $0 === chain })
        chain.stop()
        stage.gate.open()
        await stage.stage.settle()
        #expect(log.log.all == ["willStart @caller", "willStop @caller", "didStop @caller"])
        #expect(chain.isCancelled && chain.requestArray[0].isCancelled && stage.asked == ["held"])
    }

    @Test func `a stop in a step's callback ends it`() async throws {
        let chain = ChainRequest()
        chain.addRequest(stage.request("a")) { chain, _ in chain.stop() }
        chain.addRequest(stage.request("b"))
        #expect(await run(chain) == .stopped)
        #expect(stage.asked == ["a"])
    }

    @Test func `it is released without a delegate as well`() async throws {
        weak var kept: ChainRequest?
        do {
            let chain = make("a")
            kept = chain
            #expect(await run(chain) == .succeeded)
        }
        await stage.stage.settle()
        #expect(kept == nil)
    }

    @Test func `it may be started again with its original steps`() async throws {
        let chain = ChainRequest()
        chain.addRequest(stage.request("a")) { [stage] chain, _ in chain.addRequest(stage.request("b")) }
        for _ in 0..<2 { #expect(await run(chain) == .succeeded) }
        #expect(stage.asked == ["a", "b", "a", "b"])
        // The step added during the newest start is included, that of the start before is not.
        #expect(chain.requestArray.map(\.answeredPath) == ["/a", "/b"])
        #expect(chain.requestArray.last === chain.succeedRequest)
        chain.addRequest(stage.request("c"))
        #expect(await run(chain) == .succeeded)
        #expect(stage.asked.suffix(3) == ["a", "c", "b"])
    }

    @Test func `a step that an accessory adds at the start takes part in it`() async throws {
        let chain = make("a")
        chain.addAccessory(RequestEventAccessory(willStart: { [stage] in ($0 as? ChainRequest)?.addRequest(stage.request("b")) }))
        #expect(await run(chain) == .succeeded)
        #expect(stage.asked == ["a", "b"])
    }

    @Test func `a success keeps the last failed request, and a failure the last successful one`() async throws {
        let stage = try Stage.standard()
        let (flaky, good) = (SampleRequest(stage, "flaky/1"), SampleRequest(stage))
        // The batch is a step twice: it fails the first time and succeeds the second time.
        let batch = BatchRequest(requestArray: [good, flaky])
        let chain = ChainRequest()
        chain.stoppedOnFailure = false
        chain.addBatch(batch)
        chain.addBatch(batch)
        #expect(await run(chain) == .succeeded)
        #expect(batch.failedRequest == nil)
        #expect(chain.failedRequest === flaky && chain.succeedRequest === flaky)

        let other = ChainRequest()
        let inner = ChainRequest()
        let bad = SampleRequest(stage, "status/500")
        inner.addRequest(bad)
        other.addRequest(good)
        other.addStep(.chain(inner))
        #expect(await run(other) == .failed)
        #expect(other.succeedRequest === good && other.failedRequest === bad)
        #expect(other.failedStep?.request == nil)
    }

    @Test func `blocks may be set individually and are released at the end`() async throws {
        let log = GroupLog()
        let chain = make("a")
        chain.successCompletionBlock = { _ in log.note("success") }
        chain.failureCompletionBlock = { _ in log.note("failure") }
        #expect(await run(chain) == .succeeded)
        #expect(chain.successCompletionBlock == nil && chain.failureCompletionBlock == nil)
        await withTrackedContinuation { continuation in
            make("bad").startSynchronously(
                success: { _ in log.note("wrong") },
                failure: { chain in
                    log.note("failure \(chain.failedRequest?.responseStatusCode ?? 0)")
                    continuation.resume()
                })
        }
        #expect(log.all == ["success", "failure 500"])
    }

    @Test func `cancelling the task stops the chain`() async throws {
        let chain = make("held", "b")
        let task = Task { try await chain.response() }
        #expect(await stage.stage.server.waitForRequests(1))
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        stage.gate.open()
        #expect(stage.asked == ["held"])
    }

    @Test func `blocks of a start run once each`() async throws {
        let log = GroupLog()
        let chain = make("a")
        await withTrackedContinuation { continuation in
            chain.start(
                willStart: { _ in log.note("willStart") }, willStop: { _ in log.note("willStop") },
                success: { _ in log.note("success") },
                didStop: { _ in
                    log.note("didStop")
                    continuation.resume()
                })
        }
        #expect(log.all == ["willStart @caller", "willStop", "success", "didStop"])
    }
}
