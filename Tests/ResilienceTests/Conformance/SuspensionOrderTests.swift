// SPDX-License-Identifier: Apache-2.0
import CurlewCache
import CurlewEncoding
import CurlewHTTP
import CurlewResilience
import CurlewSessionTestSupport
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

/// A transport whose transfers end with it only, and that notes which are suspended.
private final class NotingTransport: Transport {
    private final class Handle: TransferHandle {
        private struct State {
            var observer: (any TransferObserver)?
            var isStarted = false
            var isSuspended = false
        }

        private let id: Int
        private let state: Lock<State>

        init(_ id: Int, _ observer: any TransferObserver) {
            self.id = id
            state = Lock(State(observer: observer))
        }

        var isStarted: Bool { state.withLock { $0.isStarted } }
        var isSuspended: Bool { state.withLock { $0.isSuspended } }

        func start() { state.withLock { $0.isStarted = true } }
        func cancel() {}
        func setSuspended(_ suspended: Bool) { state.withLock { $0.isSuspended = suspended } }
        func resumeReceiving() {}

        func end() {
            let completion = TransferCompletion(error: CurlewError.sessionInvalidated, metrics: TransferMetrics())
            state.withLock { $0.observer.take() }?.transfer(id, didComplete: completion)
        }
    }

    private let handles = Log<Handle>()

    var startedCount: Int { handles.elements.count(where: \.isStarted) }
    var suspendedCount: Int { handles.elements.count(where: \.isSuspended) }

    func makeTransfer(_ request: TransferRequest, id: Int, observer: any TransferObserver) -> any TransferHandle {
        let handle = Handle(id, observer)
        handles.append(handle)
        return handle
    }

    func makeStream(_ request: StreamTransferRequest, id: Int, observer: any StreamTransferObserver) -> any StreamHandle {
        preconditionFailure("the suite opens no stream")
    }

    func shutDown() { for handle in handles.elements { handle.end() } }
}

/// Waits for its completion.
private final class PlainObserver: TransferObserver {
    let completion = Log<Void>()

    func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }
    func transfer(_ id: Int, didSend count: Int64) {}
    func transfer(_ id: Int, didComplete completion: TransferCompletion) { self.completion.append(()) }
}

/// The transfer below a decorator is suspended if the decorator's was by the last call, also by one that came while it was started.
@Suite(.timeLimit(.minutes(1))) struct SuspensionOrderTests {
    enum Decorator: CaseIterable {
        case cache
        case cacheWithQueue
        case protocolClasses
        case coalescing
        case hedging
        case instruments

        func apply(to configuration: inout SessionConfiguration) {
            switch self {
            case .cache: configuration.cache = ResponseCache(storage: MemoryCacheStorage())
            case .cacheWithQueue: configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
            case .protocolClasses: configuration.protocolClasses = [UnwillingProtocol.self]
            case .coalescing: configuration.use(Resilience(coalescing: Coalescing()))
            case .hedging: configuration.use(Resilience(hedging: Hedging(after: .fixed(.seconds(60)), extra: 1)))
            case .instruments: configuration.instruments = [CountingInstrument()]
            }
        }
    }

    @Test("the last of the calls that come while a transfer is started counts", arguments: Decorator.allCases, [true, false])
    func order(_ decorator: Decorator, endsSuspended: Bool) async {
        let base = NotingTransport()
        var configuration = SessionConfiguration()
        decorator.apply(to: &configuration)
        let manager = SessionManager(configuration: configuration, transport: base)
        let transport = manager.session.transport
        let caller = DispatchQueue(label: "suspension.caller")
        let count = 200
        var observers: [PlainObserver] = []
        for number in 0..<count {
            let observer = PlainObserver()
            observers.append(observer)
            let handle = transport.makeTransfer(TransferRequest(url: "http://127.0.0.1:1/\(number)"), id: 1, observer: observer)
            caller.async { for suspended in [true, false, !endsSuspended, endsSuspended] { handle.setSuspended(suspended) } }
            handle.start()
        }
        caller.sync {}
        #expect(await eventually { base.startedCount == count })
        #expect(base.suspendedCount == (endsSuspended ? count : 0))
        transport.shutDown()
        for observer in observers { await observer.completion.wait(for: 1) }
        await transport.waitUntilShutDown()
    }
}
