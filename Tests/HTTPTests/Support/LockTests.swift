// SPDX-License-Identifier: Apache-2.0

import CurlewHTTP
import Testing

@Suite struct LockTests {
    private struct Failure: Error, Equatable {}

    @Test("increments from many tasks are all counted")
    func concurrentIncrements() async {
        let counter = Lock(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<20_000 { counter.withLock { $0 += 1 } }
                }
            }
        }
        #expect(counter.withLock { $0 } == 160_000)
    }

    @Test("the body's result is returned")
    func returnsResult() {
        let lock = Lock(["a"])
        #expect(lock.withLock { $0.removeLast() } == "a")
        #expect(lock.withLock { $0.isEmpty })
    }

    @Test("a body that throws unlocks, and its changes to the state persist")
    func throwingBody() {
        let lock = Lock(0)
        #expect(throws: Failure()) {
            try lock.withLock { state throws(Failure) in
                state = 1
                throw Failure()
            }
        }
        #expect(lock.withLock { $0 } == 1)
    }

    @Test("the state is released with the lock")
    func releasesState() {
        final class Canary {}
        weak var canary: Canary?
        do {
            let lock = Lock(Canary())
            canary = lock.withLock { $0 }
            #expect(canary != nil)
            withExtendedLifetime(lock) {}
        }
        #expect(canary == nil)
    }
}
