// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTestSupport
import CurlewTransport
import Testing

@testable import CurlewCore

@Suite(.timeLimit(.minutes(1))) struct NotificationsTests {
    private struct Posted: @unchecked Sendable {  // read by the test alone, after it was posted
        let name: Notification.Name
        let object: AnyObject?
        let userInfo: [AnyHashable: Any]

        var task: SessionTask? { userInfo[Notification.Key.Task] as? SessionTask }
        var data: Data? { userInfo[Notification.Key.ResponseData] as? Data }
    }

    /// Collects the notifications of one session, as tests of others may run beside it.
    private final class Observer: Sendable {
        let posted = Inbox<Posted>()
        private let tokens = Lock<[Token]>([])

        private struct Token: @unchecked Sendable {  // only handed back
            let value: any NSObjectProtocol
        }

        init(_ manager: SessionManager) {
            let (posted, delegate) = (posted, manager.delegate)
            let names = [
                Notification.Name.Task.DidResume, Notification.Name.Task.DidSuspend, Notification.Name.Task.DidCancel,
                Notification.Name.Task.DidComplete,
            ]
            tokens.withLock { tokens in
                tokens = names.map { name in
                    Token(
                        value: NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { notification in
                            let object = notification.object as AnyObject?
                            guard object === delegate || (object as? Request)?.sessionDelegate === delegate else { return }
                            posted.put(Posted(name: name, object: object, userInfo: notification.userInfo ?? [:]))
                        })
                }
            }
        }

        deinit {
            for token in tokens.withLock({ $0 }) { NotificationCenter.default.removeObserver(token.value) }
        }
    }

    private static func manager(_ mock: MockTransport) -> SessionManager {
        SessionManager(mock: mock) { $0.postsNotifications = true }
    }

    @Test("names and keys are those of the original")
    func names() {
        #expect(Notification.Name.Task.DidResume.rawValue == "org.alamofire.notification.name.task.didResume")
        #expect(Notification.Name.Task.DidSuspend.rawValue == "org.alamofire.notification.name.task.didSuspend")
        #expect(Notification.Name.Task.DidCancel.rawValue == "org.alamofire.notification.name.task.didCancel")
        #expect(Notification.Name.Task.DidComplete.rawValue == "org.alamofire.notification.name.task.didComplete")
        #expect(Notification.Key.Task == "org.alamofire.notification.key.task")
        #expect(Notification.Key.ResponseData == "org.alamofire.notification.key.responseData")
    }

    @Test("a request posts its start and its end, with its task and its body")
    func startAndEnd() async {
        let manager = Self.manager(.answering(200, [:], "body"))
        let observer = Observer(manager)
        let request = manager.request("http://mock/")
        _ = await request.serializingData().response
        let posted = await observer.posted.first(2)
        #expect(posted.map(\.name) == [Notification.Name.Task.DidResume, Notification.Name.Task.DidComplete])
        #expect(posted[0].object === request)
        #expect(posted[1].object === manager.delegate)
        #expect(posted.allSatisfy { $0.task === request.task })
        #expect(posted.map(\.data) == [nil, Data("body".utf8)])
    }

    @Test("the end is posted when the handlers are released")
    func afterRelease() async {
        let manager = Self.manager(.answering(200))
        let isReleased = Inbox<Bool>()
        let delegate = manager.delegate
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name.Task.DidComplete, object: delegate, queue: nil
        ) { [weak manager] notification in
            guard let task = notification.userInfo?[Notification.Key.Task] as? SessionTask else { return }
            isReleased.put(manager?.delegate[task] == nil && task.state == .completed)
        }
        let request = manager.request("http://mock/").response { _ in }
        #expect(await isReleased[0])
        #expect(!request.delegate.queue.isSuspended)
        NotificationCenter.default.removeObserver(token)
    }

    @Test("suspending, resuming and cancelling are posted, in order")
    func control() async {
        let manager = Self.manager(MockTransport())
        let observer = Observer(manager)
        let request = manager.request("http://mock/")
        request.suspend()
        request.resume()
        request.cancel()
        _ = await request.serializingData().response
        let posted = await observer.posted.first(5)
        let expected = [
            Notification.Name.Task.DidResume, Notification.Name.Task.DidSuspend, Notification.Name.Task.DidResume,
            Notification.Name.Task.DidCancel, Notification.Name.Task.DidComplete,
        ]
        #expect(posted.map(\.name) == expected)
        #expect(posted[3].object === request)
    }

    @Test("a download's end has no body, nor has a streamed one's")
    func withoutBody() async {
        let manager = Self.manager(.answering(200, [:], "body"))
        let observer = Observer(manager)
        _ = await manager.download("http://mock/").serializingData().response
        manager.request("http://mock/").stream { _ in }.response { _ in }
        let ends = await observer.posted.first(4).filter { $0.name == Notification.Name.Task.DidComplete }
        #expect(ends.count == 2)
        #expect(ends.allSatisfy { $0.userInfo.keys.contains(Notification.Key.Task) && $0.data == nil })
    }

    @Test("a cancelled download's end has no resume data, and takes none: its partial file goes with the request")
    func cancelledDownload() async throws {
        let temporary = try TemporaryDirectory()
        let mock = MockTransport()
        let manager = SessionManager(mock: mock) { configuration in
            configuration.postsNotifications = true
            configuration.temporaryDirectory = temporary.url
        }
        let hasData = Inbox<Bool>()
        let token = NotificationCenter.default.addObserver(
            forName: Notification.Name.Task.DidComplete, object: manager.delegate, queue: nil
        ) { notification in
            hasData.put(notification.userInfo?[Notification.Key.ResponseData] != nil)
        }
        defer { NotificationCenter.default.removeObserver(token) }
        weak var released: DownloadRequest?
        do {
            let request = manager.download("http://mock/")
            released = request
            let exchange = await mock.started[0]
            exchange.perform(.head(200, ["Content-Length": "8", "ETag": "\"v1\""]), .bytes(Data("half".utf8)))
            #expect(await eventually { exchange.actions.count == 2 })
            request.cancel()
            _ = await request.serializingURL().response
        }
        #expect(await hasData[0] == false)
        #expect(await eventually { released == nil })
        #expect(try FileManager.default.contentsOfDirectory(atPath: temporary.url.path) == [])
    }

    @Test("a request that could not be made posts nothing, nor does a session that was not told to")
    func silence() async {
        let manager = Self.manager(.answering(200))
        let silent = SessionManager(mock: .answering(200))
        let (observer, other) = (Observer(manager), Observer(silent))
        _ = await manager.request("http://a b/").serializingData().response
        _ = await silent.request("http://mock/").serializingData().response
        manager.settle()
        silent.settle()
        #expect(observer.posted.all.isEmpty)
        #expect(other.posted.all.isEmpty)
    }
}
