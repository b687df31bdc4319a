// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

extension SessionManager {
    /// Creates a data request for a URL, with parameters encoded into it.
    ///
    /// Does not throw: a request that can't be created runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - method: GET by default.
    ///   - parameters: encoded into query or body; `nil`, the default, for none.
    ///   - encoding: how parameters are encoded; by default into the query for GET, HEAD and DELETE, into a form body for other methods.
    ///   - headers: header fields, which replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of this request, such as its deadline; `nil`, the default, for the session's.
    @discardableResult
    public func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) -> DataRequest {
        guard parameters == nil, !isSubclassed else {
            return request(
                RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers),
                interceptor: interceptor, options: options)
        }
        return makeDataRequest(isStreamed: false, RequestSettings.of(interceptor, options)) { try Requestable(url, method, headers) }
    }

    /// Creates a data request from a `URLRequest`, with its own interceptor and options.
    @discardableResult
    public func request(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> DataRequest {
        guard let settings = RequestSettings.of(interceptor, options) else { return request(urlRequest) }
        return handOver(settings) {
            request(urlRequest)
        } or: {
            makeDataRequest(isStreamed: false, settings) { try Requestable(urlRequest) }
        }
    }

    /// Creates a request whose body is read with ``DataRequest/bodyStream()``: it is received only as fast as it is read.
    ///
    /// Parameters as in ``request(_:method:parameters:encoding:headers:interceptor:options:)``. The request shares no HTTP/2 connection,
    /// because a paused stream blocks the others of its connection.
    @discardableResult
    public func streamRequest(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) -> DataRequest {
        streamRequest(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor,
            options: options)
    }

    /// Creates a request from a `URLRequest` whose body is read with ``DataRequest/bodyStream()``.
    @discardableResult
    public func streamRequest(
        _ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> DataRequest {
        makeDataRequest(isStreamed: true, RequestSettings.of(interceptor, options)) { try Requestable(urlRequest, isStreamed: true) }
    }

    func makeDataRequest(
        isStreamed: Bool, _ settings: RequestSettings?, _ requestable: () throws -> Requestable
    ) -> DataRequest {
        perform(
            DataRequest(
                original: original(Request.RequestTask.data, requestable),
                session: session, sessionDelegate: delegate, receiver: makeReceiver(isStreamed: isStreamed, settings), settings: settings))
    }

    /// Receives the body of a data or upload request.
    func makeReceiver(isStreamed: Bool = false, _ settings: RequestSettings?) -> DataReceiver {
        DataReceiver(limit: settings?.options.maximumBodySize ?? session.configuration.maximumBodySize, waitsForReader: isStreamed)
    }
}
