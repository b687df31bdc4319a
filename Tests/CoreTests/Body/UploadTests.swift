// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Dispatch
import Testing

@testable import CurlewCore

/// What an upload is that no other data request is.
@Suite(.timeLimit(.minutes(1))) struct UploadTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { [directory] in $0.temporaryDirectory = directory.url }
    }

    @Test("a stream closure gets all pieces before any handler runs", arguments: UploadKind.allCases)
    func pieces(_ kind: UploadKind) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = try await kind.start(manager, in: directory)
        let events = Inbox<String>()
        request.stream { events.put(String(decoding: $0, as: UTF8.self)) }.responseData { _ in events.put("handler") }
        manager.settle()
        let exchange = await mock.started[0]
        let gate = DispatchSemaphore(value: 0)
        manager.session.queue.async { gate.wait() }
        exchange.perform(.head(200), .bytes(Data("piece".utf8)), .complete())
        manager.session.configuration.callbackQueue.sync {}
        gate.signal()
        #expect(await events.first(2) == ["piece", "handler"])
    }

    @Test("an upload that becomes a download delivers its file and leaves none", arguments: UploadKind.allCases, [true, false])
    func becomesDownload(_ kind: UploadKind, isBodyWanted: Bool) async throws {
        let manager = manager(.answering(200, [:], "text"))
        let files = Inbox<String?>()
        let pieces = Inbox<Data>()
        manager.delegate.dataTaskDidReceiveResponse = { _, _, _, completion in completion(.download ?? .cancel) }
        manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, file in
            files.put(try? String(contentsOf: file, encoding: .utf8))
        }
        // As on Foundation, it gets nothing of what goes to a file.
        if isBodyWanted { manager.delegate.dataTaskDidReceiveData = { _, _, data in pieces.put(data) } }
        _ = await (try kind.start(manager, in: directory)).serializingData().response
        #expect(files.all == ["text"])
        #expect(pieces.count == 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.url.path)
        #expect(left == (kind == .file ? ["secret"] : []))
    }

    @Test("a streamed response that becomes a download goes to its file", arguments: [true, false])
    func streamBecomesDownload(isReadLater: Bool) async throws {
        let manager = manager(.answering(200, [:], "text"))
        let files = Inbox<String?>()
        manager.delegate.dataTaskDidReceiveResponse = { _, _, _, completion in completion(.download ?? .cancel) }
        manager.delegate.downloadTaskDidFinishDownloadingToURL = { _, _, file in
            files.put(try? String(contentsOf: file, encoding: .utf8))
        }
        let request = manager.streamRequest("http://mock/")
        if isReadLater { #expect(await files[0] == "text") }
        var body = Data()
        for try await piece in request.bodyStream() { body += piece }
        #expect(body.isEmpty)
        #expect(files.all == ["text"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path).isEmpty)
    }

    // MARK: Progress

    @Test(
        "progress is reported to restart when the body is sent again, with the total that it had",
        arguments: ["redirect", "challenge", "retry"], [false, true])
    func progressBeginsAnew(_ cause: String, isForm: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        if cause == "retry" { manager.retrier = Retrying { _, _, completion in completion(true, 0) } }
        let counts = Inbox<[Int64]>()
        let form = MultipartFormData()
        form.append(Data("12345678".utf8), withName: "part")
        let request = isForm ? manager.upload(form, to: "http://mock/") : manager.upload(Data("12345678".utf8), to: "http://mock/")
        request.authenticate(user: "u", password: "p").uploadProgress { counts.put([$0.completedUnitCount, $0.totalUnitCount]) }
            .responseData { _ in }
        let first = await mock.started[0]
        first.perform(.sent(8))
        let total = try #require(await counts[0].last)
        #expect(await counts[0].first == 8 && (isForm ? total > 8 : total == 8))
        switch cause {
        case "redirect": first.respond(307, ["Location": "/next"])
        case "challenge": first.respond(401, ["WWW-Authenticate": "Basic realm=\"r\""])
        default: first.perform(.complete(CurlewError.failure(.connectionLost)))
        }
        let second = await mock.started[1]
        #expect(await counts[1] == [0, total])
        second.perform(.sent(3))
        #expect(await counts[2] == [3, total])
        #expect(request.uploadProgress.totalUnitCount == total)
        second.respond()
        _ = await request.serializingData().response
        #expect(request.uploadProgress.completedUnitCount == 3)
    }

    @Test("a redirect without the body does not reset the progress")
    func progressStays() async throws {
        let mock = MockTransport.answering(inTurn: [
            .response(303, ["Location": "/next"], readsBody: true), .response(200, [:], "answer"),
        ])
        let manager = manager(mock)
        let request = manager.upload(Data("12345678".utf8), to: "http://mock/")
        _ = await request.serializingData().response
        #expect(request.uploadProgress.completedUnitCount == 8)
    }

    @Test("pieces reported to the closure restart with the next exchange")
    func toldPieces() async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let told = Inbox<[Int64]>()
        manager.delegate.taskDidSendBodyData = { _, _, piece, count, total in told.put([piece, count, total]) }
        let request = manager.upload(Data("12345678".utf8), to: "http://mock/")
        let first = await mock.started[0]
        first.perform(.sent(3))
        first.respond(307, ["Location": "/next"])
        let second = await mock.started[1]
        second.perform(.sent(8))
        second.respond()
        _ = await request.serializingData().response
        #expect(await told.first(2) == [[3, 3, 8], [8, 8, 8]])
    }

    @Test("the announced length of a response to HEAD is not waited for")
    func head() async {
        let manager = manager(.answering(200, ["Content-Length": "1000"]))
        for isAskedBefore in [true, false] {
            let request = manager.request("http://mock/", method: .head)
            if isAskedBefore { _ = request.progress }
            let response = await request.serializingResponse(using: DataResponseSerializer { _, _, _, _ in .success(()) }).response
            #expect(response.error == nil)
            #expect(request.progress.totalUnitCount == 0)
            #expect(request.task?.countOfBytesExpectedToReceive == 0)
            #expect(request.response?.expectedContentLength == 1000)
        }
    }

    @Test("an upload of a file that is not there was no exchange")
    func missingFile() async {
        let mock = MockTransport()
        let manager = manager(mock)
        let response = await manager.upload(directory.file("none"), to: "http://mock/").serializingData().response
        #expect((response.error as? CocoaError)?.code == .fileNoSuchFile || (response.error as? CocoaError)?.code == .fileReadNoSuchFile)
        #expect(response.metrics.transactionMetrics.isEmpty)
        #expect(mock.started.count == 0)
    }
}
