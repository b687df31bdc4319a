// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct DeadlineHeapTests {
    private final class Holder: DeadlineHolder {
        var deadline: Nanoseconds = 0
        var heapIndex = -1
    }

    @Test("behaves like a sorted list under random operations", arguments: [1, 2, 3, 4])
    func model(seed: UInt64) {
        var random = SplitMix(state: seed)
        let holders = (0..<60).map { _ in Holder() }
        var heap = DeadlineHeap<Holder>()
        var model: [Int: Nanoseconds] = [:]
        for _ in 0..<5_000 {
            let index = Int(random.next() % 60)
            switch random.next() % 4 {
            case 0, 1:
                let deadline = random.next() % 100
                heap.set(holders[index], to: deadline)
                model[index] = deadline
            case 2:
                heap.remove(holders[index])
                model[index] = nil
            default:
                let now = random.next() % 100
                let popped = heap.popExpired(at: now)
                #expect((popped == nil) == (model.values.min() ?? .max > now))
                guard let popped, let index = holders.firstIndex(where: { $0 === popped }) else { continue }
                #expect(model[index] == model.values.min())
                model[index] = nil
            }
            #expect(heap.earliest == model.values.min())
            #expect(heap.count == model.count)
        }
        #expect(holders.indices.allSatisfy { (holders[$0].heapIndex >= 0) == (model[$0] != nil) })
    }

    @Test("returns expired elements in order, and keeps the rest")
    func order() {
        var heap = DeadlineHeap<Holder>()
        for deadline in [5, 3, 9, 1, 7] as [Nanoseconds] { heap.set(Holder(), to: deadline) }
        var popped: [Nanoseconds] = []
        while let holder = heap.popExpired(at: 7) { popped.append(holder.deadline) }
        #expect(popped == [1, 3, 5, 7])
        #expect(heap.earliest == 9)
    }
}
