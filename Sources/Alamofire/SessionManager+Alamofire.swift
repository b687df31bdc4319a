// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// The manager behind the global functions: created from `URLSessionConfiguration.default`, with its cookies and its cache; its
    /// requests have ``defaultHTTPHeaders``.
    public static let `default`: SessionManager = {
        NotificationMonitor.register()
        var configuration = SessionConfiguration(.default)
        configuration.headers = CurlewHTTP.HTTPHeaders(defaultHTTPHeaders)
        let manager = SessionManager(configuration: configuration)
        manager.session.deliverErrors(as: AFError.translate)
        return manager
    }()

    /// The header fields of ``default``: `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    public static let defaultHTTPHeaders: HTTPHeaders = makeDefaultHeaders().dictionary
}
