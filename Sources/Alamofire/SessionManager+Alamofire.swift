// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// The manager behind the functions outside of any type: made of `URLSessionConfiguration.default`, with its cookies and its cache; its
    /// requests carry ``defaultHTTPHeaders``.
    public static let `default`: SessionManager = {
        var configuration = SessionConfiguration(.default)
        configuration.headers = CurlewHTTP.HTTPHeaders(defaultHTTPHeaders)
        let manager = SessionManager(configuration: configuration)
        manager.session.deliverErrors(as: AFError.translate)
        return manager
    }()

    /// The header fields of ``default``: `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    public static let defaultHTTPHeaders: HTTPHeaders = makeDefaultHeaders().dictionary
}
