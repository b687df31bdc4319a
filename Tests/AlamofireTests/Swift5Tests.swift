// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

/// Code as in programs in Swift 5 mode: closures that mutate their captures, and classes with state that are not `Sendable`. That it
/// compiles is the first half of each test.
@Suite(.timeLimit(.minutes(2))) struct Swift5Tests {
    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    private class State {
        var events: [String] = []
    }

    private class Handler: RequestAdapter, RequestRetrier {
        var adapted = 0
        var asked = 0

        func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
            adapted += 1
            return urlRequest
        }

        func should(_ manager: SessionManager, retry request: Request, with error: Error, completion: @escaping RequestRetryCompletion) {
            asked += 1
            completion(asked < 2, 0.0)
        }
    }

    /// Runs synchronous code, as the program's is, on a thread where it may block.
    private func program(_ body: @escaping () throws -> Void) async throws {
        struct Program: @unchecked Sendable {  // run once, on one thread
            let body: () throws -> Void
        }
        let program = Program(body: body)
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, Error>) in
            Thread.detachNewThread { continuation.resume(with: Swift.Result { try program.body() }) }
        }
    }

    private func wait(_ body: (@escaping () -> Void) -> Void) {
        let done = DispatchSemaphore(value: 0)
        body { done.signal() }
        done.wait()
    }

    @Test("an adapter and a retrier with state") func handlerClass() async throws { try await program(handlerClassProgram) }

    private func handlerClassProgram() {
        let manager = SessionManager()
        let handler = Handler()
        manager.adapter = handler
        manager.retrier = handler
        var error: Error?
        wait { done in
            manager.request(server.url("/status/503")).validate().response(queue: callbackQueue) { response in
                error = response.error
                done()
            }
        }
        #expect(handler.adapted == 2 && handler.asked == 2)
        #expect((error as? AFError)?.responseCode == 503)
    }

    @Test("validation, progress, streaming and handlers mutate their captures") func capturedVariables() async throws {
        try await program(capturedVariablesProgram)
    }

    private func capturedVariablesProgram() {
        let manager = SessionManager()
        let state = State()
        var received = 0
        var validations = 0
        var fraction = 0.0
        wait { done in
            manager.request(server.url("/bytes/1000"))
                .validate { _, _, _ in
                    validations += 1
                    return .success
                }
                .stream { received += $0.count }
                .response(queue: callbackQueue) { _ in
                    state.events.append("streamed")
                    done()
                }
        }
        wait { done in
            manager.upload(Data(count: 1000), to: server.url("/body"))
                .uploadProgress(queue: callbackQueue) { fraction = $0.fractionCompleted }
                .downloadProgress(queue: callbackQueue) { received += Int($0.completedUnitCount) }
                .responseData(queue: callbackQueue) { _ in
                    state.events.append("uploaded")
                    done()
                }
        }
        #expect(received >= 2000 && validations == 1 && fraction == 1.0)
        #expect(state.events == ["streamed", "uploaded"])
    }

    @Test("a destination and a download's validation mutate their captures") func downloadClosures() async throws {
        try await program(downloadClosuresProgram)
    }

    private func downloadClosuresProgram() throws {
        let manager = SessionManager()
        let directory = try TemporaryDirectory()
        var asked: [URL] = []
        let destination: DownloadRequest.DownloadFileDestination = { temporaryURL, _ in
            asked.append(temporaryURL)
            return (directory.file("target"), [])
        }
        let validation: DownloadRequest.Validation = { _, _, temporaryURL, destinationURL in
            asked += [temporaryURL, destinationURL].compactMap { $0 }
            return .success
        }
        var content: Data?
        wait { done in
            manager.download(server.url("/bytes/10"), to: destination).validate(validation).responseData(queue: callbackQueue) { response in
                content = response.result.value
                done()
            }
        }
        #expect(asked.count == 3 && asked.last == directory.file("target"))
        #expect(content?.count == 10)
    }

    @Test("closures of the session's delegate mutate their captures") func delegateClosures() async throws {
        try await program(delegateClosuresProgram)
    }

    private func delegateClosuresProgram() {
        let manager = SessionManager()
        var hops = 0
        var ended: [Error?] = []
        manager.delegate.taskWillPerformHTTPRedirection = { _, _, _, request in
            hops += 1
            return request
        }
        manager.delegate.taskDidComplete = { _, _, error in ended.append(error) }
        wait { done in
            manager.request(server.url("/redirect/3")).response(queue: callbackQueue) { _ in done() }
        }
        #expect(hops == 3 && ended.count == 1 && ended.allSatisfy { $0 == nil })
    }

    @Test("closures for a download's bytes, which replace its progress") func downloadDelegateClosures() async throws {
        try await program(downloadDelegateClosuresProgram)
    }

    private func downloadDelegateClosuresProgram() {
        let manager = SessionManager()
        var written: [Int64] = []
        var progressCalls = 0
        manager.delegate.downloadTaskDidWriteData = { _, _, count, total, expected in
            written += [count, total, expected]
        }
        wait { done in
            manager.download(server.url("/bytes/1000")).downloadProgress(queue: callbackQueue) { _ in progressCalls += 1 }
                .responseData(queue: callbackQueue) { response in
                    if let file = response.temporaryURL { try? FileManager.default.removeItem(at: file) }
                    done()
                }
        }
        #expect(written == [1000, 1000, 1000])
        #expect(progressCalls == 0)
    }

    @Test("a serializer's closure mutates its captures") func serializerClosure() async throws {
        try await program(serializerClosureProgram)
    }

    private func serializerClosureProgram() {
        let manager = SessionManager()
        var calls = 0
        let serializer = DataResponseSerializer<Int> { _, _, data, _ in
            calls += 1
            return .success(data?.count ?? 0)
        }
        var value: Int?
        wait { done in
            manager.request(server.url("/bytes/7")).response(queue: callbackQueue, responseSerializer: serializer) { response in
                value = response.value
                done()
            }
        }
        #expect(calls == 1 && value == 7)
    }

    @Test("a manager is subclassed, with its initializers") func subclass() async throws { try await program(subclassProgram) }

    private func subclassProgram() {
        class Manager: SessionManager, @unchecked Sendable {
            static let shared = Manager()

            init() {
                super.init(configuration: URLSessionConfiguration.default)
            }
        }
        var code: Int?
        wait { done in
            Manager.shared.request(server.url("/status/500")).validate().response(queue: callbackQueue) { response in
                code = (response.error as? AFError)?.responseCode
                done()
            }
        }
        #expect(code == 500)
    }
}
