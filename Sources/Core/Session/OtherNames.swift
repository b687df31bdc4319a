// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionConfiguration {
    /// A name of many clients, for different things.
    @available(
        *, unavailable,
        message: "use idleTimeout, totalTimeout or connectTimeout; RequestOptions(deadline:) bounds one request with all its attempts"
    )
    public var timeout: Duration? {
        get { nil }
        set {}
    }

    /// A manager has it.
    @available(*, unavailable, message: "pass it to SessionManager(configuration:interceptor:)")
    public var interceptor: (any RequestInterceptor)? {
        get { nil }
        set {}
    }

    /// The name in async-http-client.
    @available(*, unavailable, renamed: "redirects")
    public var redirectConfiguration: RedirectPolicy {
        get { redirects }
        set {}
    }
}

extension RequestOptions {
    /// A name of many clients, for different things.
    @available(*, unavailable, message: "use deadline for all attempts, totalTimeout for each, or idleTimeout for the pause between bytes")
    public var timeout: Duration? {
        get { nil }
        set {}
    }

    /// A name of many clients, for different things.
    @available(
        *, unavailable, message: "use deadline: for all attempts, totalTimeout: for each, or idleTimeout: for the pause between bytes"
    )
    public init(timeout: Duration) { self.init() }
}

extension Session {
    /// Alamofire 5's `Session` is a ``SessionManager``.
    @available(*, unavailable, renamed: "SessionManager.default")
    public static var `default`: SessionManager { .default }

    /// Alamofire 5's `Session` is a ``SessionManager``.
    @available(*, unavailable, renamed: "SessionManager.init(configuration:interceptor:)")
    public convenience init(configuration: SessionConfiguration = SessionConfiguration(), interceptor: (any RequestInterceptor)?) {
        self.init(delegate: SessionDelegate())
    }
}

extension SessionManager {
    /// Settings of one request are ``RequestOptions``.
    @available(*, unavailable, message: "use request(_:options:) with RequestOptions(deadline:)")
    @discardableResult
    public func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil, headers: HTTPHeaders? = nil, timeout: Duration
    ) -> DataRequest {
        request(url)
    }

    /// Alamofire 5's closure, which changes the request before it is sent.
    @available(*, unavailable, message: "use options: with RequestOptions, such as its idleTimeout, or an Adapter as the interceptor:")
    @discardableResult
    public func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        requestModifier: (inout URLRequest) throws -> Void
    ) -> DataRequest {
        request(url)
    }

    /// The name in httpx, got and others.
    @available(*, unavailable, message: "use request(_:), and request(_:method:) for other methods than GET")
    @discardableResult
    public func get(_ url: any URLConvertible, headers: HTTPHeaders? = nil) -> DataRequest { request(url) }

    /// The name in async-http-client.
    @available(*, unavailable, message: "use request(_:options:) with RequestOptions(deadline:), and await serializingData().response")
    public func execute<Sent, Timeout>(_ request: Sent, timeout: Timeout) async throws -> DataResponse<Data> {
        throw CurlewError.cancelled
    }
}

extension Request {
    /// A name of other clients.
    @available(
        *, unavailable, message: "pass a RetryPolicy(retryLimit:) as the interceptor: of the call, or to SessionManager(interceptor:)"
    )
    @discardableResult
    public func retry(_ limit: UInt = 1) -> Self { self }

    /// A name of other clients.
    @available(*, unavailable, message: "pass RequestOptions(deadline:) as the options: of the call")
    @discardableResult
    public func timeout(_ duration: Duration) -> Self { self }
}

extension DataRequest {
    /// A task has the value, of the type that its serializer makes.
    @available(*, unavailable, message: "use serializingDecodable(_:).value, serializingString().value or serializingData().value")
    public var value: Any? { nil }

    /// The name in httpx, got and others.
    @available(*, unavailable, message: "use serializingDecodable(_:).value")
    public func json<Value: Decodable & Sendable>(_ type: Value.Type = Value.self) async throws -> Value {
        throw CurlewError.cancelled
    }

    /// The name in got and others.
    @available(*, unavailable, message: "use serializingString().value")
    public func text() async throws -> String { "" }
}
