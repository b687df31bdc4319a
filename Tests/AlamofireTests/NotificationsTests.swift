// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1))) struct NotificationsTests {
    private struct Posted: @unchecked Sendable {  // read by one test only, after it was posted
        let name: Notification.Name
        let object: AnyObject?
        let userInfo: [AnyHashable: Any]

        var task: SessionTask? { userInfo[Notification.Key.Task] as? SessionTask }
        var data: Data? { userInfo[Notification.Key.ResponseData] as? Data }
    }

    /// Collects the notifications of one session, since tests of others may run at the same time.
    private final class Observer: @unchecked Sendable {  // immutable
        private let tokens: [NSObjectProtocol]
        private let posted: AsyncStream<Posted>

        init(_ manager: SessionManager) {
            let (session, delegate) = (manager.session, manager.delegate)
            let (posted, continuation) = AsyncStream<Posted>.makeStream()
            let names = [
                Notification.Name.Task.DidResume, Notification.Name.Task.DidSuspend, Notification.Name.Task.DidCancel,
                Notification.Name.Task.DidComplete,
            ]
            self.posted = posted
            tokens = names.map { name in
                NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
                    let object = notification.object as AnyObject?
                    guard object === delegate || (object as? Request)?.session === session else { return }
                    continuation.yield(Posted(name: name, object: object, userInfo: notification.userInfo ?? [:]))
                }
            }
        }

        deinit {
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }

        /// Waits for a number of notifications; called once for an observer.
        func first(_ count: Int) async -> [Posted] {
            var first: [Posted] = []
            for await notification in posted {
                first.append(notification)
                if first.count == count { break }
            }
            return first
        }
    }

    /// How a manager is made that posts notifications.
    enum Kind: CaseIterable, Sendable {
        case configuration, foundationConfiguration, subclass, standard

        var manager: SessionManager {
            switch self {
            case .configuration:
                var configuration = SessionConfiguration()
                configuration.postsNotifications = true
                return SessionManager(configuration: configuration)
            case .foundationConfiguration: return SessionManager(configuration: URLSessionConfiguration.default)
            case .subclass: return Subclass()
            case .standard: return SessionManager.default
            }
        }
    }

    private class Subclass: SessionManager, @unchecked Sendable {
        init() {
            super.init(configuration: URLSessionConfiguration.default)
        }
    }

    private let server: LoopbackServer

    init() throws {
        server = try LoopbackServer.standard()
    }

    @Test("names and keys are those of the original") func names() {
        #expect(Notification.Name.Task.DidResume.rawValue == "org.alamofire.notification.name.task.didResume")
        #expect(Notification.Name.Task.DidSuspend.rawValue == "org.alamofire.notification.name.task.didSuspend")
        #expect(Notification.Name.Task.DidCancel.rawValue == "org.alamofire.notification.name.task.didCancel")
        #expect(Notification.Name.Task.DidComplete.rawValue == "org.alamofire.notification.name.task.didComplete")
        #expect(Notification.Key.Task == "org.alamofire.notification.key.task")
        #expect(Notification.Key.ResponseData == "org.alamofire.notification.key.responseData")
    }

    @Test("a request posts its start and its end, with its task and its body", arguments: Kind.allCases)
    func startAndEnd(_ kind: Kind) async {
        let manager = kind.manager
        let observer = Observer(manager)
        let request = manager.request(server.url("/json"))
        let response = await request.plainResponse()
        // Other tests may use the default manager.
        guard kind != .standard else {
            #expect(await observer.first(2).contains { $0.name == Notification.Name.Task.DidResume })
            return
        }
        let posted = await observer.first(2)
        #expect(posted.map(\.name) == [Notification.Name.Task.DidResume, Notification.Name.Task.DidComplete])
        #expect(posted[0].object === request)
        #expect(posted[1].object === manager.delegate)
        #expect(posted.allSatisfy { $0.task === request.task })
        #expect(response.data?.isEmpty == false && posted.map(\.data) == [nil, response.data])
    }

    @Test("the end is posted when the handlers are released, and its observers find the request and its error")
    func afterRelease() async throws {
        let manager = Kind.foundationConfiguration.manager
        let (released, continuation) = AsyncStream<(request: Request?, error: (any Error)?, isCompleted: Bool)>.makeStream()
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name.Task.DidComplete, object: nil, queue: nil
        ) { [weak manager] notification in
            // As such programs write it, but for the comparison.
            guard let delegate = notification.object as? SessionDelegate, delegate === manager?.delegate,
                let task = notification.userInfo?[Notification.Key.Task] as? SessionTask
            else { return }
            continuation.yield((delegate[task], delegate[task]?.delegate.error, task.state == .completed))
        }
        defer { NotificationCenter.default.removeObserver(token) }
        var ends = released.makeAsyncIterator()
        let request = manager.request(server.url("/json")).response { _ in }
        let end = try #require(await ends.next())
        #expect(end.request === request && end.error == nil && end.isCompleted)
        #expect(!request.delegate.queue.isSuspended)
        let refused = manager.request(server.url("/status/404")).validate().response { _ in }
        let failure = try #require(await ends.next())
        #expect(failure.request === refused && (failure.error as? AFError)?.responseCode == 404)
        // Cleared after posting.
        for task in [request.task, refused.task].compactMap({ $0 }) { #expect(await eventually { manager.delegate[task] == nil }) }
    }

    @Test("suspending, resuming and cancelling are posted, in order") func control() async {
        let manager = Kind.foundationConfiguration.manager
        let observer = Observer(manager)
        let request = manager.request(server.url("/silent"))
        request.suspend()
        request.resume()
        request.cancel()
        _ = await request.plainResponse()
        let posted = await observer.first(5)
        let expected = [
            Notification.Name.Task.DidResume, Notification.Name.Task.DidSuspend, Notification.Name.Task.DidResume,
            Notification.Name.Task.DidCancel, Notification.Name.Task.DidComplete,
        ]
        #expect(posted.map(\.name) == expected)
        #expect(posted[3].object === request)
    }

    @Test("the end of a download has no body, nor has that of a streamed request") func withoutBody() async {
        let manager = Kind.foundationConfiguration.manager
        let observer = Observer(manager)
        _ = await manager.download(server.url("/json")).plainResponse()
        manager.request(server.url("/json")).stream { _ in }.response { _ in }
        let ends = await observer.first(4).filter { $0.name == Notification.Name.Task.DidComplete }
        #expect(ends.count == 2)
        #expect(ends.allSatisfy { $0.userInfo.keys.contains(Notification.Key.Task) && $0.data == nil })
    }

    @Test("the end of a cancelled download has no resume data, and its partial file is removed with the request")
    func cancelledDownload() async throws {
        let temporary = try TemporaryDirectory()
        let server = try LoopbackServer { _, connection in
            try connection.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nETag: \"v1\"\r\n\r\nhalf")
            connection.waitUntilClosed()
            return nil
        }
        var configuration = SessionConfiguration()
        configuration.postsNotifications = true
        configuration.temporaryDirectory = temporary.url
        let manager = SessionManager(configuration: configuration)
        let (hasData, continuation) = AsyncStream<Bool>.makeStream()
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name.Task.DidComplete, object: nil, queue: nil
        ) { [weak manager] notification in
            guard let delegate = notification.object as? SessionDelegate, delegate === manager?.delegate else { return }
            continuation.yield(notification.userInfo?[Notification.Key.ResponseData] != nil)
        }
        defer { NotificationCenter.default.removeObserver(token) }
        do {
            let gate = Gate()
            let request = manager.download(server.url("/"))
            request.downloadProgress(queue: callbackQueue) { _ in gate.arrive() }
            #expect(await gate.arrivals(1))
            request.cancel()
            _ = await request.plainResponse()
        }
        #expect(await hasData.first { _ in true } == false)
        #expect(
            ProcessProbe.settles { (try? FileManager.default.contentsOfDirectory(atPath: temporary.url.path))?.isEmpty == true })
    }

    /// Reports the ends of requests.
    private struct EndMonitor: EventMonitor {
        let ends: AsyncStream<Void>.Continuation

        func requestDidFinish(_ request: Request) { ends.yield() }
    }

    @Test("a request that could not be made posts nothing, nor does a session without notifications") func silence() async {
        let manager = Kind.foundationConfiguration.manager
        let observer = Observer(manager)
        _ = await manager.request("http://a b/").plainResponse()
        let request = manager.request(server.url("/json"))
        _ = await request.plainResponse()
        #expect(await observer.first(2).allSatisfy { $0.task === request.task })

        let (ends, continuation) = AsyncStream<Void>.makeStream()
        var configuration = SessionConfiguration()
        configuration.eventMonitors = [EndMonitor(ends: continuation)]
        let silent = SessionManager(configuration: configuration)
        let posted = Lock(0)
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name.Task.DidComplete, object: nil, queue: nil
        ) { [weak silent] notification in
            if let delegate = notification.object as? SessionDelegate, delegate === silent?.delegate { posted.withLock { $0 += 1 } }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        // The end of the second request is reported after the notifications of the first one.
        for _ in 0..<2 {
            _ = await silent.request(server.url("/json")).plainResponse()
            _ = await ends.first { _ in true }
        }
        #expect(posted.withLock { $0 } == 0)
    }

    @Test("background handlers can be read back") func backgroundHandlers() {
        let manager = SessionManager()
        #expect(manager.backgroundCompletionHandler == nil && manager.delegate.sessionDidFinishEventsForBackgroundURLSession == nil)
        manager.backgroundCompletionHandler = {}
        manager.delegate.sessionDidFinishEventsForBackgroundURLSession = { _ in }
        #expect(manager.backgroundCompletionHandler != nil && manager.delegate.sessionDidFinishEventsForBackgroundURLSession != nil)
        manager.backgroundCompletionHandler = nil
        #expect(manager.backgroundCompletionHandler == nil && manager.delegate.sessionDidFinishEventsForBackgroundURLSession != nil)
    }
}
