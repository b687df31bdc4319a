// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewURLSession
import Testing

@Suite(.timeLimit(.minutes(1))) struct DelegateTests {
    private let server: LoopbackServer
    private let delegate = RecordingDelegate()

    init() throws {
        server = try LoopbackServer.standard()
    }

    private func session(_ queue: OperationQueue? = nil, _ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate ?? self.delegate, delegateQueue: queue)
    }

    // U3.1, U2.5
    @Test(arguments: [false, true]) func `a data task calls its delegate in order, one call at a time, also on a concurrent queue`(
        isConcurrent: Bool
    ) async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = isConcurrent ? 8 : 1
        let session = session(queue)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try server.address("/bytes/3000000"))
        #expect(task.state == .suspended && delegate.order == ["created 1"])
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect(delegate.order == ["created 1", "response", "data", "metrics", "complete"])
        #expect(GeneratedBody().matches(delegate.body) && delegate.body.count == 3_000_000)
        #expect(delegate.queues.elements.allSatisfy { $0 === queue })
        #expect(task.state == .completed && (task.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(task.countOfBytesReceived == 3_000_000 && task.countOfBytesExpectedToReceive == 3_000_000)
    }

    // U3.1
    @Test func `a task with a completion handler calls no delegate for response, body and completion`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let url = try server.address("/redirect/1")
        let handled = Log<(Data?, URLResponse?, (any Error)?)>()
        session.dataTask(with: url) { handled.append(($0, $1, $2)) }.resume()
        await handled.wait(for: 1)
        let (body, response, error) = try #require(handled.elements.first)
        let data = try #require(body)
        #expect(error == nil)
        #expect(data.count > 10 && response?.url?.path == "/json")
        #expect(delegate.order == ["created 1", "redirect 302", "metrics"])
        let (_, second) = try await session.data(from: url)
        #expect((second as? HTTPURLResponse)?.statusCode == 200)
        #expect(delegate.calls.elements == ["created 1", "redirect 302", "metrics", "created 2", "redirect 302", "metrics"])
    }

    // U2.5: each form is called, and neither is the same as the default.
    @Test func `the async forms are called, and a delegate that implements nothing gets the default`() async throws {
        final class Async: NSObject, URLSessionDataDelegate {
            let log = Log<String>()

            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
            ) async -> URLSession.ResponseDisposition {
                log.append("response")
                return .cancel
            }

            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest
            ) async -> URLRequest? {
                log.append("redirect")
                return request
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                log.append("complete \((error as? URLError)?.code.rawValue ?? 0)")
            }
        }
        final class Empty: NSObject, URLSessionDataDelegate {
            let log = Log<Int>()

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                log.append((task.response as? HTTPURLResponse)?.statusCode ?? 0)
            }
        }
        let delegate = Async()
        let first = session(nil, delegate)
        first.dataTask(with: try server.address("/redirect/1")).resume()
        await delegate.log.wait(for: 3)
        #expect(delegate.log.elements == ["redirect", "response", "complete -999"])
        first.invalidateAndCancel()
        let empty = Empty()
        let second = session(nil, empty)
        for count in 1...3 {
            second.dataTask(with: try server.address("/redirect/1")).resume()
            await empty.log.wait(for: count)
        }
        #expect(empty.log.elements == [200, 200, 200])
        second.finishTasksAndInvalidate()
    }

    // U2.5: what counts is what the asked delegate implements, not what the one does to which it passes calls on.
    @Test func `a delegate that passes calls on to one without these methods is asked each time, and its answers count`() async throws {
        final class Inner: NSObject, URLSessionTaskDelegate {}
        final class Forwarding: NSObject, URLSessionTaskDelegate {
            let redirects = Log<Int>()
            let metrics = Log<Int>()
            private let inner = Inner()

            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
            ) {
                redirects.append(response.statusCode)
                guard redirects.elements.count == 1 else { return completionHandler(nil) }
                inner.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: completionHandler)
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
                self.metrics.append(metrics.redirectCount)
                inner.urlSession(session, task: task, didFinishCollecting: metrics)
            }
        }
        final class Deciding: NSObject, URLSessionTaskDelegate {
            private let inner = Inner()

            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest
            ) async -> URLRequest? {
                _ = await inner.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
                return nil
            }
        }
        let url = try server.address("/redirect/1")
        let forwarding = Forwarding()
        let first = session(nil, forwarding)
        defer { first.invalidateAndCancel() }
        #expect((try await first.data(from: url).1 as? HTTPURLResponse)?.statusCode == 200)
        #expect((try await first.data(from: url).1 as? HTTPURLResponse)?.statusCode == 302)
        #expect(forwarding.redirects.elements == [302, 302] && forwarding.metrics.elements == [1, 0])
        let second = session(nil, Deciding())
        defer { second.invalidateAndCancel() }
        #expect((try await second.data(from: url).1 as? HTTPURLResponse)?.statusCode == 302)
        // The session's delegate is not called as well.
        let own = Forwarding()
        let third = session()
        defer { third.invalidateAndCancel() }
        _ = try await third.data(from: url, delegate: own)
        #expect(own.metrics.elements == [1])
        #expect(delegate.calls.elements == ["created 1"])
    }

    // U2.5: the session's delegate is asked and told where the task's does not implement a method.
    @Test func `a task's delegate comes before the session's`() async throws {
        final class Own: NSObject, URLSessionDataDelegate {
            let log = Log<String>()

            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
            ) {
                log.append("redirect")
                completionHandler(nil)
            }
        }
        let session = session()
        defer { session.invalidateAndCancel() }
        let own = Own()
        let task = session.dataTask(with: try server.address("/redirect/1"))
        task.delegate = own
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect(own.log.elements == ["redirect"])
        #expect(delegate.order == ["created 1", "response", "metrics", "complete"])
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302)
    }

    // U2.3
    @Test func `a body that is wanted at the end comes in one piece, and no task becomes a stream`() async throws {
        let session = session()
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try server.address("/bytes/3000000"))
        task.prefersIncrementalDelivery = false
        task.resume()
        #expect(await delegate.completion() == nil)
        #expect(delegate.calls.elements == ["created 1", "response", "metrics", "data", "complete"])
        #expect(delegate.body.count == 3_000_000)
        delegate.disposition = .becomeStream
        session.dataTask(with: try server.address("/json")).resume()
        await delegate.errors.wait(for: 2)
        #expect((delegate.errors.elements[1] as? URLError)?.code == .unsupportedURL)
    }

    // U2.1
    @Test func `an invalidated session calls its delegate last, and releases it`() async throws {
        weak var released: RecordingDelegate?
        let calls: Log<String>
        do {
            let delegate = RecordingDelegate()
            (released, calls) = (delegate, delegate.calls)
            let session = session(nil, delegate)
            let tasks = [session.dataTask(with: try server.address("/silent")), session.dataTask(with: try server.address("/json"))]
            tasks[0].resume()
            session.invalidateAndCancel()
            #expect(session.dataTask(with: try server.address("/json")).state == .suspended)
            await delegate.calls.wait(for: 7)
            #expect(tasks.allSatisfy { ($0.error as? URLError)?.code == .cancelled && $0.state == .completed })
        }
        #expect(calls.elements.suffix(1) == ["invalid"])
        #expect(calls.elements.filter { $0 == "complete" }.count == 2)
        #expect(await eventually { released == nil })
    }

    // U2.1
    @Test func `a session that finishes its tasks takes no new ones`() async throws {
        let gate = Gate()
        let server = try LoopbackServer { _, connection in
            connection.wait(until: gate)
            return .ok("done")
        }
        defer { server.stop() }
        let session = session()
        let task = session.dataTask(with: try server.address("/held"))
        task.resume()
        session.finishTasksAndInvalidate()
        let late = session.dataTask(with: try server.address("/json"))
        late.resume()
        await delegate.errors.wait(for: 1)
        gate.open()
        await delegate.errors.wait(for: 2)
        #expect(await eventually { delegate.calls.elements.last == "invalid" })
        #expect(task.error == nil && (late.error as? URLError)?.code == .cancelled)
    }

    // U2.1
    @Test func `a released session's tasks still finish`() async throws {
        let task: URLSessionTask
        do {
            let session = session()
            task = session.dataTask(with: try server.address("/delay/50"))
            task.resume()
        }
        #expect(await delegate.completion() == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    }

    // U3.1
    @Test func `operations that the program cancels on the delegate queue do not stop the calls`() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = session(queue)
        defer { session.invalidateAndCancel() }
        let blocked = DispatchSemaphore(value: 0)
        queue.addOperation { blocked.wait() }
        session.dataTask(with: try server.address("/json")).resume()
        #expect(await eventually { queue.operationCount > 1 })
        queue.cancelAllOperations()
        blocked.signal()
        #expect(await delegate.completion() == nil)
        #expect(delegate.order == ["created 1", "response", "data", "metrics", "complete"])
    }

    // U3.1: backpressure
    @Test func `a slow delegate slows down the transfer`() async throws {
        final class Slow: NSObject, URLSessionDataDelegate {
            let gate = DispatchSemaphore(value: 0)
            let received = Log<Int>()
            let end = Log<Bool>()

            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                received.append(data.count)
                if received.count == 1 { gate.wait() }
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                end.append(error == nil)
            }
        }
        let slow = Slow()
        let session = session(nil, slow)
        defer { session.invalidateAndCancel() }
        let count = 256 << 20
        let task = session.dataTask(with: try server.address("/bytes/\(count)"))
        task.resume()
        await slow.received.wait(for: 1)
        // Longer than the whole body takes without a delegate.
        let waiting = URLSession(configuration: .ephemeral)
        _ = try await waiting.data(from: try server.address("/delay/1500"))
        #expect(task.countOfBytesReceived < 16 << 20)
        slow.gate.signal()
        await slow.end.wait(for: 1)
        #expect(slow.end.elements == [true] && slow.received.elements.reduce(0, +) == count)
    }
}
