// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Returns the events that a server sends for a URL (WHATWG HTML, section 9.2).
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// Never throws; the request is sent when iteration starts. The stream retains the manager.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - headers: header fields; `Accept` and `Cache-Control` are added if they are missing.
    ///   - configuration: the stream's configuration.
    ///   - interceptor: adapts the request of each connection, and decides about its retries; `nil` for none.
    ///   - options: the settings of each connection's request, such as its idle timeout; `nil`, the default, for the session's. The deadline
    ///     is that of all connections together, with the waits between them, from the beginning of an iteration; then `next()` throws its
    ///     error. That of ``withDeadline(_:isolation:_:)-(Duration,_,_)`` around this call, or around the beginning of the iteration, bounds
    ///     them likewise; without any of these, one around a call of `next()` bounds the connections that this call makes, and its waits.
    public func eventStream(
        _ url: any URLConvertible, headers: HTTPHeaders? = nil, configuration: EventStreamConfiguration = EventStreamConfiguration(),
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> EventStream {
        makeEventStream(Result { try URLRequest(url: url, method: .get, headers: headers) }, configuration, interceptor, options)
    }

    /// Returns the events that a server sends for a `URLRequest`; see ``eventStream(_:headers:configuration:interceptor:options:)``.
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// With a method other than GET, the stream reconnects only if the configuration says so.
    public func eventStream(
        _ urlRequest: any URLRequestConvertible, configuration: EventStreamConfiguration = EventStreamConfiguration(),
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> EventStream {
        makeEventStream(Result { try urlRequest.asURLRequest() }, configuration, interceptor, options)
    }

    private func makeEventStream(
        _ request: Result<URLRequest, any Error>, _ configuration: EventStreamConfiguration, _ interceptor: (any RequestInterceptor)?,
        _ options: RequestOptions?
    ) -> EventStream {
        EventStream(
            manager: self, request: request, configuration: configuration, interceptor: interceptor, options: options,
            deadline: Deadline.current)
    }
}
