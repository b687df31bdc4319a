// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewResilience
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewCore

/// What a session's end is the reason for stays so, if it is cancelled while its start is on its way.
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
}
