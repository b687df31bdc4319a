// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding

extension Notification.Name {
    /// The events of the tasks of sessions whose `postsNotifications` is set.
    ///
    /// Posted to `NotificationCenter.default`, on the session's queue, in the order of events: a slow observer delays the session's other
    /// requests. `userInfo` has the ``/CurlewCore/SessionTask`` under `Notification.Key.Task`.
    ///
    /// Foundation of Swift 6.2 finds no observers of an object that is no `NSObject`, on Linux: observe all objects there (`object: nil`),
    /// and compare the notification's.
    public struct Task {
        /// A request was started or resumed; the object is the ``/CurlewCore/Request``.
        public static let DidResume = NotificationMonitor.name("didResume")
        /// A request was suspended; the object is the ``/CurlewCore/Request``.
        public static let DidSuspend = NotificationMonitor.name("didSuspend")
        /// A request was cancelled; the object is the ``/CurlewCore/Request``.
        public static let DidCancel = NotificationMonitor.name("didCancel")
        /// A request has finished, and its handlers run; the object is the ``/CurlewCore/SessionDelegate``, whose subscript has the request
        /// until the observers have returned. Data and upload requests have the response's body under `Notification.Key.ResponseData`,
        /// unless it was streamed.
        public static let DidComplete = NotificationMonitor.name("didComplete")
    }
}

extension Notification {
    /// The keys in `userInfo` of the notifications in `Notification.Name.Task`.
    public struct Key {
        /// The ``/CurlewCore/SessionTask`` of the request's last attempt.
        public static let Task = "org.alamofire.notification.key.task"
        /// The response's body, as `Data`.
        public static let ResponseData = "org.alamofire.notification.key.responseData"
    }
}

extension SessionConfiguration {
    /// Whether the events of requests are posted as the notifications of `Notification.Name.Task`, which costs each request some
    /// microseconds. `true` for configurations made from a `URLSessionConfiguration`, else `false` by default.
    public var postsNotifications: Bool {
        get { notifiesLayerMonitor }
        set {
            NotificationMonitor.register()
            notifiesLayerMonitor = newValue
        }
    }
}

/// Posts events as notifications. Requests without a task, because they could not be made, have none.
struct NotificationMonitor: EventMonitor {
    private static let isRegistered: Void = LayerMonitor.register(NotificationMonitor())

    /// Registers the monitor for the sessions that post notifications, once. Until it is called those sessions have no cost for them.
    static func register() { isRegistered }

    /// The name of a notification. Programs that observe notifications need one, which registers the monitor.
    static func name(_ event: String) -> Notification.Name {
        register()
        return Notification.Name("org.alamofire.notification.name.task.\(event)")
    }

    func requestDidResume(_ request: Request) { post(Notification.Name.Task.DidResume, of: request) }

    func requestDidSuspend(_ request: Request) { post(Notification.Name.Task.DidSuspend, of: request) }

    func requestDidCancel(_ request: Request) { post(Notification.Name.Task.DidCancel, of: request) }

    func requestDidFinish(_ request: Request) {
        guard let task = request.task else { return }
        var userInfo: [AnyHashable: Any] = [Notification.Key.Task: task]
        // A download's data is its resume data; reading it would name the partial file, which no owner would remove.
        if request is DataRequest, let data = request.delegate.data { userInfo[Notification.Key.ResponseData] = data }
        let delegate = request.sessionDelegate
        // Observers look the request up, by the delegate's subscript.
        delegate.present(request, of: task) {
            NotificationCenter.default.post(name: Notification.Name.Task.DidComplete, object: delegate, userInfo: userInfo)
        }
    }

    private func post(_ name: Notification.Name, of request: Request) {
        guard let task = request.task else { return }
        NotificationCenter.default.post(name: name, object: request, userInfo: [Notification.Key.Task: task])
    }
}
