// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// What a session's end is the reason for stays so, if it is cancelled while its start is on its way; and the end is reported when all have
/// ended.
@Suite(.timeLimit(.minutes(1))) struct EndOrderTests {
    /// Where users' code is called during a start.
    enum Place: CaseIterable {
        case policies
        case instruments
    }

    /// Runs a closure once, within the start of a transfer.
    private final class Hook: ExchangeInstrument {
        private let body = Lock<(@Sendable () -> Void)?>(nil)

        func set(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }
        func run() { body.withLock { $0.take() }?() }

        func willStart(_ exchange: OutgoingExchange) -> (any ExchangeObservation)? {
            run()
            return nil
        }
    }

    private final class ErrorObserver: TransferObserver {
        let errors = Log<any Error>()

        func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
        func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
        func transfer(_ id: Int, didSend count: Int64) {}
        func transfer(_ id: Int, didComplete completion: TransferCompletion) {
            if let error = completion.error { errors.append(error) }
        }
    }

    @Test("a cancellation within the start of a transfer, after the end of its session, is not the reason", arguments: Place.allCases)
    func cancellation(_ place: Place) async {
        let hook = Hook()
        var configuration = SessionConfiguration()
        switch place {
        case .policies:
            let group = PolicyGroup.named { _ in
                hook.run()
                return "all"
            }
            configuration.use(Resilience(concurrency: ConcurrencyLimiter(.fixed(1), group: group)))
        case .instruments: configuration.instruments = [hook]
        }
        let manager = SessionManager(configuration: configuration, transport: MockTransport(.status(204)))
        manager.startRequestsImmediately = false
        let unstarted = manager.request("http://127.0.0.1:1/")
        var request = TransferRequest(url: "http://127.0.0.1:1/")
        request.source = ExchangeSource(unstarted.driver, .first)
        let transport = manager.session.transport
        let observer = ErrorObserver()
        let handle = transport.makeTransfer(request, id: 1, observer: observer)
        transport.shutDown()
        let wasRun = Lock(false)
        hook.set {
            wasRun.withLock { $0 = true }
            handle.cancel()
        }
        handle.start()
        await observer.errors.wait(for: 1)
        guard case CurlewError.sessionInvalidated? = observer.errors.elements.first else {
            Issue.record("\(observer.errors.elements)")
            return
        }
        #expect(wasRun.withLock { $0 })
        await transport.waitUntilShutDown()
        unstarted.cancel()
    }

    /// What a transport in front of another one has, when the other one ends.
    enum Layer: CaseIterable {
        /// Transfers that wait for the place of one that ends.
        case limiter
        /// Suspended requests that share a transfer.
        case coalescing
        /// A suspended response that was stored.
        case cache

        var count: Int { self == .limiter ? 20 : 2 }

        func configure(_ configuration: inout SessionConfiguration) {
            switch self {
            case .limiter: configuration.use(Resilience(concurrency: ConcurrencyLimiter(.fixed(1), group: .session)))
            case .coalescing: configuration.use(Resilience(coalescing: Coalescing()))
            case .cache: configuration.cache = .memory()
            }
        }
    }

    /// Has its shut-down return when a gate is opened.
    private final class HeldEnd: ForwardingTransport {
        let base: any Transport
        let gate = Gate()

        init(_ base: any Transport) { self.base = base }

        func shutDown() {
            base.shutDown()
            gate.arrive()
            _ = gate.wait()
        }
    }

    @Test(arguments: Layer.allCases)
    func `The end is reported when all have ended, though the base transport ends first`(_ layer: Layer) async {
        var configuration = SessionConfiguration()
        layer.configure(&configuration)
        let response = MockResponse.text("stored").header("Cache-Control", "max-age=60")
        let base = HeldEnd(MockTransport(layer == .cache ? response : .stalled))
        let manager = SessionManager(configuration: configuration, transport: base)
        let transport = manager.session.transport
        if layer == .cache { #expect(await manager.request("http://mock/").serializingData().response.error == nil) }
        let observer = ErrorObserver()
        for id in 0..<layer.count {
            let handle = transport.makeTransfer(TransferRequest(url: "http://mock/"), id: id, observer: observer)
            if layer != .limiter { handle.setSuspended(true) }
            handle.start()
        }
        let completed = Log<Int>()
        Task {
            await transport.waitUntilShutDown()
            completed.append(observer.errors.count)
        }
        DispatchQueue.global().async { transport.shutDown() }
        #expect(await base.gate.arrivals())
        // What is not right reports the end now.
        await base.waitUntilShutDown()
        for _ in 0..<10 {
            await withCheckedContinuation { continuation in
                manager.session.queue.async { continuation.resume() }
            }
        }
        base.gate.open()
        await completed.wait(for: 1)
        #expect(completed.elements == [layer.count])
        manager.invalidateAndCancel()
    }

    /// A transfer that has completed when it is cancelled, though its observer does not know it yet.
    private final class CompletedTransport: Transport {
        private final class Handle: TransferHandle {
            private let body: @Sendable () -> Void

            init(_ body: @escaping @Sendable () -> Void) { self.body = body }

            func start() { body() }
            func cancel() {}
            func setSuspended(_ suspended: Bool) {}
            func resumeReceiving() {}
        }

        let started = Inbox<(id: Int, observer: any TransferObserver)>()

        func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
            Handle { self.started.put((id, observer)) }
        }

        func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
            preconditionFailure("the test opens no stream")
        }

        func shutDown() {}
    }

    @Test(arguments: [true, false])
    func `A request is not asked whether to store a response if it was ended before`(_ isSessionEnd: Bool) async {
        let base = CompletedTransport()
        var configuration = SessionConfiguration()
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let manager = SessionManager(configuration: configuration, transport: base)
        manager.delegate.dataTaskWillCacheResponse = { _, _, _, completion in
            Issue.record("asked")
            completion(nil)
        }
        let request = manager.request("http://mock/")
        let (id, observer) = await base.started[0]
        #expect(observer.transfer(id, didReceive: ResponseHead(statusCode: 200, headers: ["Cache-Control": "max-age=60"])) == .proceed)
        if isSessionEnd { manager.session.transport.shutDown() } else { request.cancel() }
        observer.transfer(id, didComplete: TransferCompletion(error: nil, metrics: TransferMetrics()))
        let error = await request.serializingData().response.error
        switch error {
        case CurlewError.sessionInvalidated?: #expect(isSessionEnd)
        case CurlewError.cancelled?: #expect(!isSessionEnd)
        default: Issue.record("\(String(describing: error))")
        }
        await manager.session.transport.waitUntilShutDown()
        manager.invalidateAndCancel()
    }

    @Test func `With a store that may block, a transfer that is started after the end completes within its start`() async {
        var configuration = SessionConfiguration()
        configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
        let manager = SessionManager(configuration: configuration, transport: MockTransport(.status(204)))
        let transport = manager.session.transport
        transport.shutDown()
        await transport.waitUntilShutDown()
        let observer = ErrorObserver()
        transport.makeTransfer(TransferRequest(url: "http://mock/"), id: 1, observer: observer).start()
        let errors = observer.errors.elements
        guard errors.count == 1, case CurlewError.sessionInvalidated = errors[0] else {
            Issue.record("\(errors)")
            return
        }
        manager.invalidateAndCancel()
    }
}
