// SPDX-License-Identifier: Apache-2.0
import CurlewCore

// The makers with an interceptor and options, beside those that a subclass may override. They call neither of those, but
// ``HTTPRequestOperationManager/httpRequestOperation(with:success:failure:)``, as those do.

extension HTTPRequestOperationManager {
    /// Enqueues a GET with its own settings. See ``operation(method:_:parameters:interceptor:options:success:failure:)``.
    @_disfavoredOverload @discardableResult
    public func get(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "GET", url, parameters: parameters, interceptor: interceptor, options: options, success: success,
            failure: failure)
    }

    /// Enqueues a POST with its own settings. See ``operation(method:_:parameters:interceptor:options:success:failure:)``.
    @_disfavoredOverload @discardableResult
    public func post(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "POST", url, parameters: parameters, interceptor: interceptor, options: options, success: success,
            failure: failure)
    }

    /// Enqueues a PUT with its own settings. See ``operation(method:_:parameters:interceptor:options:success:failure:)``.
    @_disfavoredOverload @discardableResult
    public func put(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "PUT", url, parameters: parameters, interceptor: interceptor, options: options, success: success,
            failure: failure)
    }

    /// Enqueues a PATCH with its own settings. See ``operation(method:_:parameters:interceptor:options:success:failure:)``.
    @_disfavoredOverload @discardableResult
    public func patch(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "PATCH", url, parameters: parameters, interceptor: interceptor, options: options, success: success,
            failure: failure)
    }

    /// Enqueues a DELETE with its own settings. See ``operation(method:_:parameters:interceptor:options:success:failure:)``.
    @_disfavoredOverload @discardableResult
    public func delete(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "DELETE", url, parameters: parameters, interceptor: interceptor, options: options, success: success,
            failure: failure)
    }

    /// Enqueues a HEAD with its own settings; `success` receives no object.
    @_disfavoredOverload @discardableResult
    public func head(
        _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        success: (@Sendable (HTTPRequestOperation) -> Void)? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        operation(
            method: "HEAD", url, parameters: parameters, interceptor: interceptor, options: options,
            success: { operation, _ in success?(operation) }, failure: failure)
    }

    /// Enqueues a POST of a multipart form with its own settings. Files and streams are read before this returns.
    @_disfavoredOverload @discardableResult
    public func post(
        _ url: String, parameters: [String: Any]? = nil, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil,
        constructingBodyWith block: (StreamingMultipartFormData) throws -> Void, success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(RequestOptions(interceptor, options), success, failure) {
            try requestSerializer.multipartFormRequest(
                method: "POST", url: try resolve(url), parameters: parameters, constructingBodyWith: block)
        }
    }

    /// Enqueues an operation with any method and its own settings.
    ///
    /// - Parameters:
    ///   - method: any token (RFC 9110, section 9.1).
    ///   - url: relative to ``baseURL``, or absolute.
    ///   - parameters: what the request serializer encodes into the request.
    ///   - interceptor: adapts this operation's requests and decides about their retries; `nil`, the default, for none.
    ///   - options: see ``URLConnectionOperation/requestOptions``; what is not set is that of ``requestOptions``.
    ///   - success: receives the object, on ``completionQueue``.
    ///   - failure: receives the error, on ``completionQueue``.
    /// - Returns: the operation; `nil` if no request could be created, in which case `failure` is called later.
    @_disfavoredOverload @discardableResult
    public func operation(
        method: String, _ url: String, parameters: Any? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil, success: Success? = nil, failure: Failure? = nil
    ) -> HTTPRequestOperation? {
        enqueue(RequestOptions(interceptor, options), success, failure) {
            try requestSerializer.request(method: method, url: try resolve(url), parameters: parameters)
        }
    }
}

extension RequestOptions {
    /// The options with an interceptor before their own; `nil` without both.
    fileprivate init?(_ interceptor: (any RequestInterceptor)?, _ options: RequestOptions?) {
        guard interceptor != nil || options != nil else { return nil }
        self = RequestOptions(interceptor: interceptor).filled(from: options)
        deadline = options?.deadline
    }

    /// The same options with another deadline.
    func with(deadline: Duration?) -> RequestOptions {
        var result = self
        result.deadline = deadline
        return result
    }
}
