// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// Validations added after a request without handlers has finished still count, and its completion is reported once.
@Suite(.timeLimit(.minutes(1))) struct LateValidationTests {
    private struct Recorder: EventMonitor {
        let events = Inbox<String>()
        func request(_ request: Request, didComplete task: SessionTask, with error: (any Error)?) { events.put("complete") }
        func requestDidFinish(_ request: Request) { events.put("finish") }
    }

    private let directory: TemporaryDirectory
    private let recorder = Recorder()

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport, told: Inbox<Void> = Inbox()) -> SessionManager {
        let manager = SessionManager(mock: mock) { [recorder] in $0.eventMonitors = [recorder] }
        manager.delegate.taskDidComplete = { _, _, _ in told.put(()) }
        return manager
    }

    @Test("a page that is refused late goes from its destination, and its end is told once")
    func refused() async throws {
        let told = Inbox<Void>()
        let manager = manager(.answering(404, [:], "page"), told: told)
        let target = directory.file("file")
        let request = manager.download("http://mock/", to: target)
        _ = await recorder.events.first(2)
        #expect(FileManager.default.fileExists(atPath: target.path))
        #expect(statusOf(await request.validate().serializingURL().response.error) == 404)
        #expect(!FileManager.default.fileExists(atPath: target.path))
        manager.settle()
        #expect(recorder.events.all == ["complete", "finish"])
        #expect(told.count == 1)
    }

    @Test("a file that is accepted late stays, and its end is told once")
    func accepted() async throws {
        let told = Inbox<Void>()
        let manager = manager(.answering(200, [:], "text"), told: told)
        let request = manager.download("http://mock/", to: directory.file("file"))
        _ = await recorder.events.first(2)
        #expect(await request.validate().serializingString().response.value == "text")
        manager.settle()
        #expect(recorder.events.all == ["complete", "finish"])
        #expect(told.count == 1)
    }

    @Test("a late asynchronous validation counts, and leaves no task")
    func asynchronous() async throws {
        let manager = manager(.answering(200, [:], "text"))
        let request = manager.request("http://mock/")
        _ = await recorder.events.first(2)
        request.validate { _, _, _ async throws in throw UserError(number: 7) }
        #expect(request.driver.state.withLock { $0.steps == nil })
        let error = await request.serializingString().response.error
        #expect(error.map { "\($0)".contains("7") } == true)
        #expect(request.driver.state.withLock { $0.steps == nil })
    }

    @Test("a late refusal that is retried is another attempt, whose end is told, and the request has finished once")
    func retried() async throws {
        let manager = manager(.answering(inTurn: [.response(404, [:], "page"), .response(200, [:], "text")]))
        manager.retrier = Retrying { request, _, completion in completion(request.retryCount == 0, 0) }
        let target = directory.file("file")
        let request = manager.download("http://mock/", to: target)
        _ = await recorder.events.first(2)
        #expect(await request.validate().serializingString().response.value == "text")
        manager.settle()
        #expect(recorder.events.all == ["complete", "finish", "complete"])
    }

    @Test("validations are let go of at the end, and later ones are not kept", arguments: [true, false])
    func letGo(isLate: Bool) async {
        let manager = manager(.answering(200, [:], "text"))
        let request = manager.request("http://mock/")
        var object: Inbox<Void>? = Inbox()
        let box = object.map { WeakBox($0) }
        if isLate { _ = await request.serializingString().response }
        request.validate { [object] _, _, _ in
            object?.put(())
            return .success
        }
        object = nil
        if !isLate { #expect(await request.serializingString().response.value == "text") }
        #expect(await eventually { box?.isEmpty == true })
        #expect(request.response?.statusCode == 200)
    }
}
