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

    /// What has accessories, made of requests that fail before anything is sent.
    enum Kind: CaseIterable {
        case request, cached, batch, chain

        func make(_ stage: CacheStage, _ accessories: [any RequestAccessory]) -> any RunnableRequest {
            stage.stage.configuration.baseUrl = ""
            let requests: [BaseRequest] = [SampleRequest(stage.stage), CachedSample(stage)]
            for request in requests { request.requestAccessories = accessories }
            switch self {
            case .request: return requests[0]
            case .cached: return requests[1]
            case .batch:
                let batch = BatchRequest(requestArray: requests)
                batch.requestAccessories = accessories
                return batch
            case .chain:
                let chain = ChainRequest()
                chain.stoppedOnFailure = false
                for request in requests { chain.addRequest(request) }
                chain.requestAccessories = accessories
                return chain
            }
        }
    }

    /// Counts the events.
    private final class Counting: RequestAccessory {
        private let counts = Lock((willStart: 0, willStop: 0, didStop: 0, isInOrder: true))

        func requestWillStart(_ request: any RunnableRequest) { count { $0.willStart += 1 } }
        func requestWillStop(_ request: any RunnableRequest) { count { $0.willStop += 1 } }
        func requestDidStop(_ request: any RunnableRequest) { count { $0.didStop += 1 } }

        private func count(_ event: (inout (willStart: Int, willStop: Int, didStop: Int, isInOrder: Bool)) -> Void) {
            counts.withLock { counts in
                event(&counts)
                if counts.didStop > counts.willStop || counts.willStop > counts.willStart { counts.isInOrder = false }
            }
        }

        var isBalanced: Bool { counts.withLock { $0.willStart > 0 && Set([$0.willStart, $0.willStop, $0.didStop]).count == 1 } }
        var isInOrder: Bool { counts.withLock { $0.isInOrder } }
    }

    /// Counts the activities that are shown.
    private final class Shown: ActivityPresenter {
        private let activities = Lock<Set<Activity>>([])
        var count: Int { activities.withLock { $0.count } }

        func show(_ activity: Activity) { activities.withLock { _ = $0.insert(activity) } }
        func update(_ activity: Activity, fraction: Double) {}
        func hide(_ activity: Activity) { activities.withLock { _ = $0.remove(activity) } }
    }

    @Test(arguments: Kind.allCases)
    func `every start that accessories see ends, also if it is stopped beside it`(_ kind: Kind) async throws {
        let stage = try CacheStage()
        let (counting, shown) = ([Counting(), Counting()], Shown())
        let subject = kind.make(stage, [counting[0], ActivityAccessory(presenter: shown), counting[1]])
        for _ in 0..<2000 {
            DispatchQueue.concurrentPerform(iterations: 2) { index in
                if index == 0 { subject.start() } else { subject.stop() }
            }
        }
        subject.stop()
        #expect(await eventually { counting.allSatisfy(\.isBalanced) && stage.stage.agent.requests.isEmpty })
        #expect(counting.allSatisfy(\.isInOrder) && shown.count == 0)
        let agent = RequestGroupAgent.shared
        #expect(!agent.batchRequests.contains { $0 === subject } && !agent.chainRequests.contains { $0 === subject })
    }

    @Test(arguments: Kind.allCases) func `a stop while accessories are notified of the start comes after it`(_ kind: Kind) throws {
        let (first, second, shown) = (Meddling("willStart") { $0.stop() }, Meddling("") { _ in }, Shown())
        let subject = kind.make(try CacheStage(), [])
        subject.requestAccessories = [first, second, ActivityAccessory(presenter: shown)]
        subject.start()
        #expect(first.log.all == Self.once && second.log.all == Self.once && shown.count == 0)
    }

    @Test(arguments: Kind.allCases)
    func `a start while accessories are notified of the end is a run of its own`(_ kind: Kind) async throws {
        let stage = try CacheStage()
        let (counting, shown, starts) = (Counting(), Shown(), Lock(0))
        let again = Meddling("willStop") { subject in
            let isFirst = starts.withLock { starts in
                starts += 1
                return starts == 1
            }
            if isFirst { subject.start() }
        }
        let subject = try #require(kind.make(stage, []) as? any WaitableRequest)
        subject.requestAccessories = [again, counting, ActivityAccessory(presenter: shown)]
        let ending = await withTrackedContinuation { (continuation: TrackedContinuation<RequestEnding>) in
            subject.start { continuation.resume(returning: $0) }
        }
        #expect(ending == .failed && starts.withLock { $0 } == 2)
        #expect(counting.isBalanced && counting.isInOrder && shown.count == 0)
        #expect(again.log.all.filter { $0.hasPrefix("willStart") }.count == 2)
    }

    @Test func `callbacks after a start in requestWillStop belong to that start`() async throws {
        let stage = try GroupStage()
        let log = Log()
        let batch = BatchRequest(requestArray: stage.requests("a", "b"))
        for subject in [stage.request("c"), batch, ChainRequest()] as [any WaitableRequest] {
            if let chain = subject as? ChainRequest { chain.addRequest(stage.request("d")) }
            (subject as? SampleRequest)?.successCompletionBlock = { log.note("c \($0.answeredPath ?? "")") }
            (subject as? BatchRequest)?.successCompletionBlock = { log.note("batch \($0.requestArray.map { $0.answeredPath ?? "" })") }
            (subject as? ChainRequest)?.successCompletionBlock = { log.note("chain \($0.succeedRequest?.answeredPath ?? "")") }
            subject.addAccessory(RequestEventAccessory(willStop: { $0.start() }))
            let ending = await withTrackedContinuation { (continuation: TrackedContinuation<RequestEnding>) in
                subject.start { continuation.resume(returning: $0) }
            }
            #expect(ending == .succeeded)
        }
        #expect(log.all == ["c /c @callback", "batch [\"/a\", \"/b\"] @callback", "chain /d @callback"])
        #expect(stage.asked.sorted() == ["a", "a", "b", "b", "c", "c", "d", "d"])
    }

    @Test func `the failure of a start that was stopped is not that of the next one`() async throws {
        let stage = try GroupStage()
        defer { stage.gate.open() }
        let request = stage.request("a")
        request.onResponse = { request in
            request.stop()
            (request as? SampleRequest)?.path = "held"
            request.start()
            throw UserError()
        }
        request.start()
        #expect(await stage.gate.arrivals())
        // The stopped start is processed to its end.
        await withTrackedContinuation { continuation in
            stage.stage.agent.processingQueue.async(flags: .barrier) { continuation.resume() }
        }
        #expect(request.isExecuting && request.error == nil)
        request.stop()
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
