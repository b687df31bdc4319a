// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTestSupport
import CurlewTesting
import CurlewTransport
import Testing

@testable import CurlewResilience

/// The numbers of transfers below coalescing, which follow from those of requests unless these are taken.
@Suite(.timeLimit(.minutes(1))) struct CoalescingNumbersTests {
    /// Coalesces as the policy does, and lets the test call the transport.
    private struct CapturingLayer: TransportLayer {
        let captured: Inbox<CoalescingTransport>
        var neededSources: NeededSources { .none }

        func transport(over base: any Transport, at place: TransportLayerPlace, in context: LayerContext) -> any Transport {
            guard place == .aboveCache else { return base }
            let transport = CoalescingTransport(base, Coalescing(), PolicyTeller(Resilience(), context))
            captured.put(transport)
            return transport
        }
    }

    private final class Listener: TransferObserver {
        let heads = Monitor<[Int]>([])
        let ends = Inbox<Bool>()
        private let action: ReceiveAction

        init(_ action: ReceiveAction = .proceed) { self.action = action }

        func transfer(_ id: Int, didReceive head: ResponseHead) -> ReceiveAction {
            heads.update { $0.append(id) }
            return action
        }

        func transfer(_ id: Int, didReceive bytes: UnsafeRawBufferPointer) -> ReceiveAction { .proceed }

        func transfer(_ id: Int, didSend count: Int64) {}

        func transfer(_ id: Int, didComplete completion: TransferCompletion) { ends.put(completion.error == nil) }
    }

    private let captured = Inbox<CoalescingTransport>()
    private let session: ScriptedSession

    init() {
        let layer = CapturingLayer(captured: captured)
        session = ScriptedSession(Resilience()) { $0.layers.append(layer) }
    }

    private func request(_ path: String) -> TransferRequest { TransferRequest(url: "https://api.example.org/\(path)") }

    @Test("a follow-up whose number has a transfer that others still share gets another one, and the next one its own again")
    func followUps() async {
        let transport = await captured[0]
        let (first, second) = (Listener(.cancel), Listener())
        transport.start(request("a"), id: 5, observer: first)
        transport.start(request("a"), id: 6, observer: second)
        let shared = await session.exchange(0)
        shared.perform(.head(302))
        #expect(await first.ends[0] == false)
        let followUp = Listener()
        transport.start(request("b"), id: 5, observer: followUp)
        let other = await session.exchange(1)
        #expect(other.id != shared.id && !shared.isOver)
        // Calls are for the follow-up.
        transport.setSuspended(true, of: 5)
        #expect(other.isSuspended && !shared.isSuspended)
        transport.setSuspended(false, of: 5)
        transport.cancel(5)
        #expect(await followUp.ends[0] == false)
        #expect(other.isOver && !shared.isOver)
        shared.perform(.complete())
        #expect(await second.ends[0])
        #expect(second.heads.read { $0 } == [6])
        let last = Listener()
        transport.start(request("c"), id: 5, observer: last)
        let third = await session.exchange(2)
        #expect(third.id == shared.id)
        third.perform(.head(200), .complete())
        #expect(await last.ends[0])
    }

    @Test("requests that a layer has numbered are coalesced and called as others are") func otherNumbers() async {
        let transport = await captured[0]
        let listeners = [Listener(), Listener(), Listener()]
        transport.start(request("a"), id: -5, observer: listeners[0])
        transport.start(request("a"), id: -6, observer: listeners[1])
        transport.start(request("b"), id: .min, observer: listeners[2])
        let (shared, sole) = (await session.exchange(0), await session.exchange(1))
        #expect(shared.id != sole.id)
        transport.cancel(.min)
        #expect(await listeners[2].ends[0] == false)
        shared.perform(.head(200), .complete())
        for (listener, number) in zip(listeners, [-5, -6]) {
            #expect(await listener.ends[0])
            #expect(listener.heads.read { $0 } == [number])
        }
    }

    @Test("calls for requests that can't be joined any more do not touch those that can") func otherCalls() async {
        let transport = await captured[0]
        for number in 1...100 { transport.start(request("\(number)"), id: number, observer: Listener()) }
        transport.setSuspended(true, of: 7)
        transport.cancel(8)
        // More than are remembered.
        for number in 1_000...2_000 { transport.cancel(number) }
        for number in 2_001...3_000 { transport.setSuspended(true, of: number) }
        let suspended = await session.exchange(6)
        #expect(suspended.isSuspended)
        let joining = Listener()
        transport.start(request("7"), id: 101, observer: joining)
        #expect(await eventually { !suspended.isSuspended })
        #expect(session.count == 100)
        suspended.perform(.head(200), .complete())
        #expect(await joining.ends[0])
        transport.start(request("8"), id: 102, observer: Listener())
        #expect(session.count == 101)
        transport.start(request("9"), id: 103, observer: Listener())
        #expect(session.count == 101)
        session.manager.invalidateAndCancel()
    }
}
