// SPDX-License-Identifier: Apache-2.0

extension URLConnectionOperation {
    /// Posted when an operation's connection begins, again after a pause; the object is the operation. On the callback queue of its session.
    public static let didStartNotification = Notification.Name("com.alamofire.networking.operation.start")
    /// Posted when an operation's connection is over, also by a pause; the object is the operation. On the callback queue of its session.
    public static let didFinishNotification = Notification.Name("com.alamofire.networking.operation.finish")

    func post(_ name: Notification.Name) {
        settings.session.configuration.callbackQueue.async { NotificationCenter.default.post(name: name, object: self) }
    }
}
