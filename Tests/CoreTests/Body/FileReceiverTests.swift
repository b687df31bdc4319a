// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

private func codeOf(_ error: (any Error)?) -> CocoaError.Code? { (error as? CocoaError)?.code }

@Suite(.timeLimit(.minutes(1))) struct FileReceiverTests {
    private let directory: TemporaryDirectory
    private let temporary: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        temporary = try TemporaryDirectory()
    }

    private func manager(_ mock: MockTransport) -> SessionManager {
        let url = temporary.url
        return SessionManager(mock: mock) { $0.temporaryDirectory = url }
    }

    @Test("a file appears under its name when it is whole, not before")
    func whole() async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let target = directory.file("file")
        let request = manager.download("http://mock/", to: target)
        let exchange = await mock.started[0]
        exchange.perform(.head(200))
        #expect(await eventually { !exchange.isPaused })
        exchange.perform(.bytes(Data("text".utf8)))
        #expect(!FileManager.default.fileExists(atPath: target.path))
        exchange.perform(.complete())
        #expect(try await request.serializingURL().value == target)
        #expect(try String(contentsOf: target, encoding: .utf8) == "text")
        #expect(try contents(of: directory.url) == ["file"])
        #expect(try contents(of: temporary.url).isEmpty)
    }

    @Test("without a destination the file stays where it was written, also one that a validation refused", arguments: [200, 404])
    func noDestination(_ status: Int) async throws {
        let manager = manager(.answering(status, [:], "text"))
        let response = await manager.download("http://mock/").validate().serializingData().response
        let file = try #require(response.temporaryURL)
        #expect(response.destinationURL == nil)
        #expect(try String(contentsOf: file, encoding: .utf8) == "text")
        #expect(statusOf(response.error) == (status == 404 ? 404 : nil))
    }

    @Test("the destination is asked once, whatever the status, before validation", arguments: [200, 404])
    func asked(_ status: Int) async throws {
        let manager = manager(.answering(status, [:], "text"))
        let target = directory.file("file")
        let asked = Inbox<Int>()
        let validated = Inbox<URL?>()
        let request = manager.download("http://mock/") { _, response in
            asked.put(response.statusCode)
            return (target, [])
        }
        let response = await request.validate { _, _, _, destination in
            validated.put(destination)
            return .success
        }.validate().serializingURL().response
        #expect(asked.all == [status])
        #expect(validated.all == [target])
        #expect(response.destinationURL == target)
        #expect(try String(contentsOf: target, encoding: .utf8) == "text")
    }

    @Test("a known destination is not touched when validation fails")
    func refused() async throws {
        let target = try directory.write(Data("old".utf8), to: "file")
        let manager = manager(.answering(404, [:], "new"))
        // A request that is under way already could end without its validation.
        manager.startRequestsImmediately = false
        let request = manager.download("http://mock/", to: target, options: .removePreviousFile).validate()
        request.resume()
        #expect(statusOf(await request.serializingURL().response.error) == 404)
        #expect(try String(contentsOf: target, encoding: .utf8) == "old")
        #expect(try contents(of: directory.url) == ["file"])
    }

    @Test("a response names no file that was removed, by a validator in time or a late one", arguments: [false, true])
    func refusedFileIsNotNamed(isLate: Bool) async throws {
        let target = directory.file("file")
        let manager = manager(.answering(404, [:], "new"))
        manager.startRequestsImmediately = isLate
        let request = manager.download("http://mock/", to: target)
        // Without a handler the request finishes by itself, and the file is at its destination.
        if isLate { #expect(await eventually { request.driver.state.withLock { $0.lifecycle.stage == .finished } }) }
        #expect(FileManager.default.fileExists(atPath: target.path) == isLate)
        request.validate()
        if !isLate { request.resume() }
        let response = await request.serializingURL().response
        #expect(statusOf(response.error) == 404 && response.error?.asCurlewError?.responseBody == "new")
        #expect(response.destinationURL == nil && response.temporaryURL == nil && response.fileURL == nil)
        #expect(try contents(of: directory.url).isEmpty && contents(of: temporary.url).isEmpty)
    }

    @Test("a file that can't be moved is where it was written, or was removed, and the response says so", arguments: [false, true])
    func unmovableFile(isKnown: Bool) async throws {
        let target = directory.file("a/file")
        let manager = manager(.answering(200, [:], "new"))
        let request = isKnown ? manager.download("http://mock/", to: target) : manager.download("http://mock/") { _, _ in (target, []) }
        let response = await request.serializingURL().response
        #expect(codeOf(response.error) == .fileNoSuchFile)
        if isKnown {
            #expect(response.destinationURL == nil && response.temporaryURL == nil && response.fileURL == nil)
        } else {
            #expect(response.destinationURL == target && response.fileURL == response.temporaryURL)
            #expect(try String(contentsOf: #require(response.fileURL), encoding: .utf8) == "new")
        }
    }

    @Test("a file that is there is an error before anything is received")
    func existing() async throws {
        let target = try directory.write(Data("old".utf8), to: "file")
        let manager = manager(.answering(200, [:], "new"))
        #expect(codeOf(await manager.download("http://mock/", to: target).serializingURL().response.error) == .fileWriteFileExists)
        #expect(try String(contentsOf: target, encoding: .utf8) == "old")
        let replaced = await manager.download("http://mock/", to: target, options: .removePreviousFile).serializingString().response
        #expect(replaced.value == "new")
    }

    @Test("directories are made when asked for", arguments: [true, false])
    func directories(_ making: Bool) async throws {
        let target = directory.url.appendingPathComponent("a/b/file")
        let manager = manager(.answering(200, [:], "new"))
        let request = manager.download("http://mock/", to: target, options: making ? .createIntermediateDirectories : [])
        let response = await request.serializingString().response
        #expect(response.value == (making ? "new" : nil))
        #expect(codeOf(response.error) == (making ? nil : .fileNoSuchFile))
    }

    @Test("a file has no name before it is whole, where the file system can do that", arguments: ["known", "asked", "none"])
    func unnamed(_ kind: String) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let canBeUnnamed = try !PartFile(in: temporary.url).isNamed
        let target = directory.file("file")
        let request =
            switch kind {
            case "known": manager.download("http://mock/", to: target)
            case "asked": manager.download("http://mock/") { _, _ in (target, []) }
            default: manager.download("http://mock/")
            }
        let exchange = await mock.started[0]
        exchange.perform(.head(200), .bytes(Data("text".utf8)))
        #expect(await eventually { exchange.actions.count == 2 })
        let names = try contents(of: kind == "known" ? directory.url : temporary.url)
        // What the system needs for the look above is gone by then.
        #expect(names.filter { $0.hasSuffix(".part") }.count == (canBeUnnamed ? 0 : 1) || !canBeUnnamed)
        exchange.perform(.complete())
        #expect(await request.serializingString().response.value == "text")
        #expect(try contents(of: directory.url) == (kind == "none" ? [] : ["file"]))
    }

    @Test("a validation of one's own finds the file where it was written", arguments: [true, false])
    func validated(_ isAccepted: Bool) async throws {
        let manager = manager(.answering(200, [:], "text"))
        // A request that is under way already could end without its validation.
        manager.startRequestsImmediately = false
        let seen = Inbox<String?>()
        let request = manager.download("http://mock/", to: directory.file("file")).validate { _, _, file, _ in
            seen.put(file.flatMap { try? String(contentsOf: $0, encoding: .utf8) })
            return isAccepted ? .success : .failure(UserError())
        }
        request.resume()
        #expect(await request.serializingString().response.value == (isAccepted ? "text" : nil))
        #expect(seen.all == ["text"])
        #expect(try contents(of: directory.url) == (isAccepted ? ["file"] : []))
    }

    @Test("a refused file goes when its request ends while a retry is due", arguments: ["cancel", "invalidate"], [true, false])
    func refusedWhileWaiting(_ end: String, isAsked: Bool) async throws {
        let manager = manager(.answering(500, [:], "page"))
        let asked = Inbox<RequestRetryCompletion>()
        manager.retrier = Retrying { _, _, completion in asked.put(completion) }
        let left = Inbox<[String]>()
        let request = isAsked ? manager.download("http://mock/") { file, _ in (file, []) } : manager.download("http://mock/")
        request.validate().response { [temporary] _ in left.put((try? contents(of: temporary.url)) ?? ["none"]) }
        (await asked[0])(true, 3600)
        #expect(try contents(of: temporary.url).count == 1)
        if end == "cancel" { request.cancel() } else { manager.invalidateAndCancel() }
        #expect(await left[0] == [])
        let response = await request.serializingURL().response
        #expect(end == "cancel" ? isCancelled(response.error) : isInvalidated(response.error))
        #expect(response.temporaryURL == nil)
    }

    @Test("failed and cancelled downloads leave no file", arguments: [true, false], [true, false])
    func failures(_ isCancelled: Bool, _ isKnown: Bool) async throws {
        let mock = MockTransport()
        let manager = manager(mock)
        let request = isKnown ? manager.download("http://mock/", to: directory.file("file")) : manager.download("http://mock/")
        let exchange = await mock.started[0]
        exchange.perform(.head(200), .bytes(Data("text".utf8)))
        #expect(await eventually { exchange.actions.count == 2 })
        if isCancelled { request.cancel() } else { exchange.perform(.complete(CurlewError.failure(.connectionLost))) }
        let response = await request.serializingURL().response
        #expect(response.error != nil)
        #expect(response.temporaryURL == nil)
        #expect(try contents(of: directory.url).isEmpty)
        #expect(try contents(of: temporary.url).isEmpty)
    }

    @Test("cancelling before the file is open leaves none", arguments: 0..<20)
    func cancelledWhileOpening(_ round: Int) async throws {
        let mock = MockTransport { _ in [.head(200)] }
        let manager = manager(mock)
        let request = manager.download("http://mock/")
        let exchange = await mock.started[0]
        if round % 2 == 0 { exchange.perform(.sent(0)) }
        request.cancel()
        #expect(isCancelled(await request.serializingURL().response.error))
        #expect(try contents(of: temporary.url).isEmpty)
    }

    @Test("a retry starts with a new file, and the refused one is gone")
    func retried() async throws {
        let target = directory.file("file")
        let manager = manager(.answering(inTurn: [.response(500, [:], "bad"), .response(200, [:], "good")]))
        manager.retrier = Retrying { _, _, completion in completion(true, 0) }
        let response = await manager.download("http://mock/", to: { _, _ in (target, []) }).validate().serializingString().response
        #expect(response.value == "good")
        #expect(try contents(of: directory.url) == ["file"])
        #expect(try contents(of: temporary.url).isEmpty)
    }

    @Test("validators do not retain the receiver")
    func noCycle() async {
        let manager = manager(.answering(200))
        var box: WeakBox<FileReceiver>?
        do {
            let request = manager.download("http://mock/", to: directory.file("x")).validate { _, _, _, _ in .success }
            box = WeakBox(request.receiver)
            _ = await request.serializingURL().response
        }
        #expect(await eventually { box?.isEmpty != false })
    }
}
