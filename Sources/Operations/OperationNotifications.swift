// SPDX-License-Identifier: Apache-2.0

extension URLConnectionOperation {
    /// Posted when an operation's connection starts, and again after a pause, on the session's callback queue; the object is the operation.
    public static let didStartNotification = Notification.Name("com.alamofire.networking.operation.start")
    /// Posted when an operation's connection ends, also by a pause, on the session's callback queue; the object is the operation.
    public static let didFinishNotification = Notification.Name("com.alamofire.networking.operation.finish")

    func post(_ name: Notification.Name) {
        settings.session.configuration.callbackQueue.async { NotificationCenter.default.post(name: name, object: self) }
    }
}
