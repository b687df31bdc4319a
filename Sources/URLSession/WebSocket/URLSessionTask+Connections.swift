// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// What tasks that are connections have of their session.

extension URLSessionTask {
    /// The owner of the task's connections; `nil` if no delegate can be asked about them.
    var connectionOwner: (any RequestOwner)? {
        session.delegate == nil && values.withLock { $0.delegate == nil } ? nil : self
    }

    /// The timeout for making a connection, in seconds: the request's own unless it is the default, or else the session's.
    func connectionTimeout(of request: URLRequest?) -> TimeInterval {
        if let timeout = request?.timeoutInterval, timeout != 60, timeout > 0 { return min(timeout, 1e9) }
        return min(session.curlew.session.configuration.timeoutIntervalForRequest, 1e9)
    }

    /// The options of the task's connections.
    func connectionOptions(of request: URLRequest?) -> RequestOptions {
        var options = RequestOptions()
        if let timeout = request?.timeoutInterval, timeout != 60, timeout > 0 { options.connectTimeout = .seconds(min(timeout, 1e9)) }
        return options
    }
}
