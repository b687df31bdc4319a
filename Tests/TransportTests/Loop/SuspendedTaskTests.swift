// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport
import Testing

@testable import CurlewTransport

/// A test hangs if a task is not resumed; resuming one twice crashes the process.
@Suite(.timeLimit(.minutes(1))) struct SuspendedTaskTests {
    private struct State {
        var suspended: [SuspendedTask] = []
        var isOver = false
    }

    private let state = Lock(State())
    private let allWait = Gate()
    private let allRan = Gate()

    /// Suspends its task.
    private func suspend() async {
        await withUnsafeContinuation { continuation in
            state.withLock { $0.suspended.append(SuspendedTask(continuation)) }
            allWait.arrive()
        }
    }

    /// Suspends `count` tasks, resumes them with `resume` on another thread, and returns what each of them then reads from `isOver`.
    private func seen(by count: Int, _ resume: @escaping @Sendable ([SuspendedTask]) -> Void) async -> [Bool] {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask {
                    await suspend()
                    allRan.arrive()
                    return state.withLock { $0.isOver }
                }
            }
            #expect(await allWait.arrivals(count))
            let suspended = state.withLock { $0.suspended }
            await offThePool { resume(suspended) }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test(arguments: [1, 2, 15]) func tasksOfATurnAreResumedAtItsEnd(_ count: Int) async {
        let seen = await seen(by: count) { suspended in
            let batch = ResumptionBatch()
            batch.use {
                batch.begin()
                for task in suspended { task.resume() }
                #expect(batch.continuations.count == count)
                state.withLock { $0.isOver = true }
                batch.end()
            }
        }
        #expect(seen == Array(repeating: true, count: count))
    }

    @Test(arguments: [16, 17, 100]) func manyTasksDoNotWaitForEachOther(_ count: Int) async {
        let seen = await seen(by: count) { suspended in
            let batch = ResumptionBatch()
            batch.use {
                batch.begin()
                for task in suspended.prefix(16) { task.resume() }
                #expect(batch.continuations.isEmpty && allRan.arrivals(16))
                for task in suspended.dropFirst(16) { task.resume() }
                batch.end()
            }
        }
        #expect(seen.count == count)
    }

    @Test func tasksAreResumedAtOnceOutsideOfTurns() async {
        let seen = await seen(by: 3) { suspended in
            suspended[0].resume()
            let batch = ResumptionBatch()
            batch.use {
                suspended[1].resume()
                batch.begin()
                batch.end()
                suspended[2].resume()
            }
            #expect(ResumptionBatch.current == nil)
        }
        #expect(seen.count == 3)
    }

    @Test func tasksOnALoopsThreadAreResumedThere() async {
        await withUnsafeContinuation { continuation in
            let task = LoopsThread.suspended(continuation)
            // A batched task would wait forever: the turn doesn't end.
            DispatchQueue.global().async { LoopsThread.resumeInEndlessTurn(task) }
        }
    }
}

/// Simulates the thread of a loop.
private enum LoopsThread {
    static func suspended(_ continuation: UnsafeContinuation<Void, Never>) -> SuspendedTask {
        ResumptionBatch().use { SuspendedTask(continuation) }
    }

    static func resumeInEndlessTurn(_ task: SuspendedTask) {
        let batch = ResumptionBatch()
        batch.use {
            batch.begin()
            task.resume()
        }
    }
}
