// SPDX-License-Identifier: Apache-2.0
import CurlewCaching
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewRequests

/// Runs the test's action when it is notified.
private final class Meddling: RequestAccessory {
    let log = Log()
    private let moment: String
    private let action: @Sendable (any RunnableRequest) -> Void

    init(_ moment: String, _ action: @escaping @Sendable (any RunnableRequest) -> Void) {
        self.moment = moment
        self.action = action
    }

    func requestWillStart(_ request: any RunnableRequest) { note("willStart", request) }
    func requestWillStop(_ request: any RunnableRequest) { note("willStop", request) }
    func requestDidStop(_ request: any RunnableRequest) { note("didStop", request) }

    private func note(_ event: String, _ request: any RunnableRequest) {
        log.note(event)
        if event == moment { action(request) }
    }
}

/// Concurrent and reentrant stops: by accessories that are being notified, and by several threads.
@Suite(.timeLimit(.minutes(1))) struct StopTests {
    private static let once = ["willStart @caller", "willStop @caller", "didStop @caller"]
    private static let moments = ["willStart", "willStop", "didStop"]

    private func record(_ request: BaseRequest) {
        Issue.record("\(request) called back")
    }

    @Test(arguments: moments) func `an accessory may stop its request and is notified once`(_ moment: String) async throws {
        let stage = try GroupStage()
        defer { stage.gate.open() }
        let accessory = Meddling(moment) { $0.stop() }
        let request = stage.request("held")
        request.addAccessory(accessory)
        request.startWithCompletion { record($0) }
        request.stop()
        #expect(accessory.log.all == Self.once)
        #expect(request.isCancelled && !request.isExecuting && stage.stage.agent.requests.isEmpty)
        if moment == "willStart" { #expect(stage.asked.isEmpty) }
    }

    @Test(arguments: moments) func `an accessory may stop its batch and is notified once`(_ moment: String) async throws {
        let stage = try GroupStage()
        defer { stage.gate.open() }
        let accessory = Meddling(moment) { $0.stop() }
        let batch = BatchRequest(requestArray: stage.requests("held", "held"))
        batch.addAccessory(accessory)
        batch.startWithCompletion { _ in Issue.record("A stopped batch called back") }
        batch.stop()
        #expect(accessory.log.all == Self.once)
        #expect(batch.isCancelled && !batch.isExecuting && stage.stage.agent.requests.isEmpty)
    }

    @Test(arguments: ["willStart", "willStop"])
    func `an accessory's start of its request has no effect`(_ moment: String) async throws {
        let stage = try GroupStage()
        defer { stage.gate.open() }
        let accessory = Meddling(moment) { $0.start() }
        let request = stage.request("held")
        request.addAccessory(accessory)
        request.start()
        request.stop()
        #expect(accessory.log.all == Self.once)
        #expect(!request.isExecuting)
    }

    @Test func `concurrent starts and stops notify accessories of as many starts as ends`() async throws {
        let stage = try GroupStage()
        stage.gate.open()
        let accessory = Meddling("") { _ in }
        let request = stage.request("held")
        request.addAccessory(accessory)
        for _ in 0..<50 {
            DispatchQueue.concurrentPerform(iterations: 4) { index in
                if index < 2 { request.start() } else { request.stop() }
            }
            _ = await run(request)
        }
        let all = accessory.log.all.map { $0.prefix { $0 != " " } }
        let count = { (name: String) in all.filter { $0 == name }.count }
        // A stop may find a request that has not been started; its accessories are notified of that as well.
        #expect(count("willStop") == count("didStop") && count("willStop") >= count("willStart"))
        #expect(stage.stage.agent.requests.isEmpty)
    }

    @Test func `an accessory may stop a request before its cached response is delivered`() async throws {
        let stage = try CacheStage()
        try await CachedSample(stage).response()
        let request = CachedSample(stage)
        request.preloadCache = true
        request.addAccessory(Meddling("willStart") { $0.stop() })
        request.startWithCompletion { record($0) }
        await stage.stage.settle()
        #expect(stage.count == 1 && request.isCancelled)
    }

    @Test func `a suspended request resumes`() async throws {
        let stage = try GroupStage()
        let request = stage.request("held")
        request.start()
        #expect(await stage.gate.arrivals())
        request.suspend()
        #expect(request.requestTask?.state == .suspended)
        stage.gate.open()
        #expect(request.isExecuting)
        request.resume()
        #expect(await eventually { request.isFinished })
        #expect(stage.asked == ["held"])
    }
}
