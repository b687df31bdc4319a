// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

// Names and keys are those of Alamofire 4, whose programs listen for them.

extension Notification.Name {
    /// What happens to the tasks of sessions whose ``SessionConfiguration/postsNotifications`` is set.
    ///
    /// Posted to `NotificationCenter.default`, on the session's queue, in the order of events: an observer that takes long there holds up the
    /// session's other requests. `userInfo` has the ``SessionTask`` under ``Notification/Key/Task``.
    public struct Task {
        /// A request was started, or lets its task go on; the object is the ``Request``.
        public static let DidResume = Notification.Name("org.alamofire.notification.name.task.didResume")
        /// A request was stopped for a while; the object is the ``Request``.
        public static let DidSuspend = Notification.Name("org.alamofire.notification.name.task.didSuspend")
        /// A request was cancelled; the object is the ``Request``.
        public static let DidCancel = Notification.Name("org.alamofire.notification.name.task.didCancel")
        /// A request is over and its handlers run; the object is the ``SessionDelegate``. Data and upload requests have their response's
        /// body under ``Notification/Key/ResponseData``, unless it was streamed.
        public static let DidComplete = Notification.Name("org.alamofire.notification.name.task.didComplete")
    }
}

extension Notification {
    /// The keys in `userInfo` of the notifications in ``Notification/Name/Task``.
    public struct Key {
        /// The ``SessionTask`` of the request's last attempt.
        public static let Task = "org.alamofire.notification.key.task"
        /// The response's body, as `Data`.
        public static let ResponseData = "org.alamofire.notification.key.responseData"
    }
}

/// Posts what happens as notifications. Requests without a task, as they could not be made, have none.
struct NotificationMonitor: EventMonitor {
    func requestDidResume(_ request: Request) { post(Notification.Name.Task.DidResume, of: request) }

    func requestDidSuspend(_ request: Request) { post(Notification.Name.Task.DidSuspend, of: request) }

    func requestDidCancel(_ request: Request) { post(Notification.Name.Task.DidCancel, of: request) }

    func requestDidFinish(_ request: Request) {
        guard let task = request.task else { return }
        var userInfo: [AnyHashable: Any] = [Notification.Key.Task: task]
        // A download's data are those to resume it, which would be taken here, and its partial file left to nobody.
        if request is DataRequest, let data = request.delegate.data { userInfo[Notification.Key.ResponseData] = data }
        NotificationCenter.default.post(
            name: Notification.Name.Task.DidComplete, object: request.sessionDelegate, userInfo: userInfo)
    }

    private func post(_ name: Notification.Name, of request: Request) {
        guard let task = request.task else { return }
        NotificationCenter.default.post(name: name, object: request, userInfo: [Notification.Key.Task: task])
    }
}
