// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct ProgressReporterTests {
    @Test("calls that wait for the queue are not doubled, and the last value is always told")
    func coalescing() async {
        let reporter = ProgressReporter()
        let queue = DispatchQueue(label: "progress")
        let gate = DispatchSemaphore(value: 0)
        let calls = Inbox<Int64>()
        queue.async { gate.wait() }
        reporter.setHandler({ calls.put($0.completedUnitCount) }, queue: queue)
        for count in 1...100 { reporter.update(completed: Int64(count), total: 100) }
        gate.signal()
        queue.sync {}
        #expect(calls.all == [100])
        #expect(reporter.progress.fractionCompleted == 1)
    }

    @Test("a late handler is told at once what has come, and nothing when nothing has")
    func lateHandler() async {
        let reporter = ProgressReporter()
        let queue = DispatchQueue(label: "progress")
        let calls = Inbox<Int64>()
        reporter.setHandler({ _ in calls.put(-1) }, queue: queue)
        queue.sync {}
        #expect(calls.all.isEmpty)
        reporter.update(completed: 7)
        queue.sync {}
        reporter.setHandler({ calls.put($0.completedUnitCount) }, queue: queue)
        queue.sync {}
        #expect(calls.all == [-1, 7])
        #expect(reporter.progress.totalUnitCount == -1)
    }

    @Test("the object is one and the same, and goes back for a new attempt")
    func sameObject() {
        let reporter = ProgressReporter()
        let progress = reporter.progress
        reporter.setTotal(10)
        reporter.update(completed: 5)
        #expect(progress.completedUnitCount == 5 && progress.totalUnitCount == 10)
        reporter.reset()
        #expect(progress.completedUnitCount == 0 && progress.totalUnitCount == -1)
        #expect(reporter.progress === progress)
    }

    @Test("an upload's progress ends at 1", arguments: [true, false])
    func upload(_ asStream: Bool) async {
        let manager = SessionManager(mock: MockTransport { _ in .response(readsBody: true) })
        let data = Data(count: 10_000)
        let request = asStream ? manager.upload(InputStream(data: data), to: "http://mock/") : manager.upload(data, to: "http://mock/")
        let calls = Inbox<Double>()
        request.uploadProgress { calls.put($0.fractionCompleted) }
        _ = await request.serializingData().response
        #expect(request.uploadProgress.fractionCompleted == 1)
        #expect(request.uploadProgress.completedUnitCount == 10_000)
        #expect(await eventually { calls.all.last == 1 })
    }

    @Test("a download's progress counts what came against what was announced")
    func download() async {
        let mock = MockTransport()
        let manager = SessionManager(mock: mock)
        let request = manager.request("http://mock/")
        let exchange = await mock.started[0]
        exchange.perform(.head(200, ["Content-Length": "4"]), .bytes(Data("ab".utf8)))
        #expect(request.progress.fractionCompleted == 0.5)
        exchange.perform(.bytes(Data("cd".utf8)), .complete())
        #expect(request.progress.fractionCompleted == 1)
    }
}
