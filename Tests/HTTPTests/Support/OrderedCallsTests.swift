// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Dispatch
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct OrderedCallsTests {
    private struct State {
        var calls = OrderedCalls()
        var made: [Int] = []
    }

    private let state = Lock(State())

    private func makeCalls() {
        OrderedCalls.make { isCalling in state.withLock { $0.calls.take(isCalling) } }
    }

    @Test("calls are made once, in their order") func order() {
        state.withLock { state in
            for number in 1...3 { state.calls.add { [self] in self.state.withLock { $0.made.append(number) } } }
        }
        #expect(!state.withLock { $0.calls.isEmpty })
        makeCalls()
        makeCalls()
        #expect(state.withLock { $0.made == [1, 2, 3] && $0.calls.isEmpty })
    }

    @Test("calls that a call adds are made after it, and after those that wait") func added() {
        state.withLock { state in
            state.calls.add { [self] in
                self.state.withLock { $0.calls.add { self.state.withLock { $0.made.append(3) } } }
                makeCalls()
                self.state.withLock { $0.made.append(1) }
            }
            state.calls.add { [self] in self.state.withLock { $0.made.append(2) } }
        }
        makeCalls()
        #expect(state.withLock { $0.made } == [1, 2, 3])
    }

    @Test("calls of another thread are made by the one that makes calls") func threads() {
        let (begun, mayEnd, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        state.withLock { state in
            state.calls.add { [self] in
                begun.signal()
                mayEnd.wait()
                self.state.withLock { $0.made.append(1) }
            }
        }
        Thread { [self] in
            makeCalls()
            ended.signal()
        }.start()
        begun.wait()
        state.withLock { state in state.calls.add { [self] in self.state.withLock { $0.made.append(2) } } }
        makeCalls()
        #expect(state.withLock { $0.made }.isEmpty)
        mayEnd.signal()
        ended.wait()
        #expect(state.withLock { $0.made } == [1, 2])
    }
}
