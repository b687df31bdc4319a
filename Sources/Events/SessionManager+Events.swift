// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// The events that a server sends for a URL (WHATWG HTML, section 9.2).
    ///
    /// Never throws, and asks for nothing before somebody reads. The stream keeps the manager.
    ///
    /// - Parameters:
    ///   - url: where to.
    ///   - headers: header fields; `Accept` and `Cache-Control` are added where they are missing.
    ///   - configuration: how it works.
    ///   - interceptor: adapts the request of each connection, and decides about its retries; `nil` for none.
    public func eventStream(
        _ url: any URLConvertible, headers: HTTPHeaders? = nil, configuration: EventStreamConfiguration = EventStreamConfiguration(),
        interceptor: (any RequestInterceptor)? = nil
    ) -> EventStream {
        makeEventStream(Result { try URLRequest(url: url, method: .get, headers: headers) }, configuration, interceptor)
    }

    /// The events that a server sends for a `URLRequest`; see ``eventStream(_:headers:configuration:interceptor:)``.
    ///
    /// With a method other than GET the stream goes on over a new connection only if the configuration says so.
    public func eventStream(
        _ urlRequest: any URLRequestConvertible, configuration: EventStreamConfiguration = EventStreamConfiguration(),
        interceptor: (any RequestInterceptor)? = nil
    ) -> EventStream {
        makeEventStream(Result { try urlRequest.asURLRequest() }, configuration, interceptor)
    }

    private func makeEventStream(
        _ request: Result<URLRequest, any Error>, _ configuration: EventStreamConfiguration, _ interceptor: (any RequestInterceptor)?
    ) -> EventStream {
        EventStream(manager: self, request: request, configuration: configuration, interceptor: interceptor)
    }
}
