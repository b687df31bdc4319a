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

// MARK: - Background sessions

/// The handlers of background sessions, kept so that they can be read back.
private struct BackgroundHandlers: Sendable {
    var completion: (@Sendable () -> Void)?
    var didFinishEvents: (@Sendable (Session) -> Void)?
}

extension SessionManager {
    /// Not called, as background sessions are not supported.
    @preconcurrency public var backgroundCompletionHandler: (@Sendable () -> Void)? {
        get { delegate.withClosures { $0.values[BackgroundHandlers.self]?.completion } }
        set { delegate.withClosures { $0.values[BackgroundHandlers.self, default: BackgroundHandlers()].completion = newValue } }
    }
}

extension SessionDelegate {
    /// Not called, as background sessions are not supported.
    @preconcurrency public var sessionDidFinishEventsForBackgroundURLSession: (@Sendable (Session) -> Void)? {
        get { withClosures { $0.values[BackgroundHandlers.self]?.didFinishEvents } }
        set { withClosures { $0.values[BackgroundHandlers.self, default: BackgroundHandlers()].didFinishEvents = newValue } }
    }
}
