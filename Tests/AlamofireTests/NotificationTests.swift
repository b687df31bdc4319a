// SPDX-License-Identifier: Apache-2.0
import CurlewAlamofire
import CurlewTestSupport
import Foundation
import Testing

private protocol TaskReader: Sendable {
    func task(of notification: Notification) -> AnyObject?
    func dataTask(of notification: Notification) -> AnyObject?
}

/// Code as written for Alamofire; deprecated like the names it uses, so that it gives no warnings here.
private struct AlamofireProgram: TaskReader {
    @available(*, deprecated)
    func task(of notification: Notification) -> AnyObject? { notification.userInfo?[Notification.Key.Task] as? URLSessionTask }

    @available(*, deprecated)
    func dataTask(of notification: Notification) -> AnyObject? { notification.userInfo?[Notification.Key.Task] as? URLSessionDataTask }
}

@Suite(.timeLimit(.minutes(1))) struct NotificationTests {
    @Test("a notification's task casts to URLSessionTask") func tasks() async throws {
        let server = try LoopbackServer.standard()
        let manager = SessionManager()
        manager.startRequestsImmediately = false
        let request = manager.request(server.url("/json"))
        let task = try #require(request.task)
        let program: any TaskReader = AlamofireProgram()
        let notification = Notification(
            name: Notification.Name.Task.DidResume, object: request, userInfo: [Notification.Key.Task: task])
        #expect(program.task(of: notification) === task && program.dataTask(of: notification) === task)
    }
}
