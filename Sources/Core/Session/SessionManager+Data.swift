// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The parts of a request, put together and encoded when asked for.
struct RequestParts: URLRequestConvertible {
    let url: any URLConvertible
    let method: HTTPMethod
    var parameters: Parameters?
    var encoding: any ParameterEncoding = URLEncoding.default
    let headers: HTTPHeaders?

    func asURLRequest() throws -> URLRequest {
        let request = try URLRequest(url: url, method: method, headers: headers)
        return parameters == nil ? request : try encoding.encode(request, with: parameters)
    }
}

extension SessionManager {
    /// Makes a request for a URL, with parameters encoded into it.
    ///
    /// Never throws: a request that can't be made runs its handlers with the error.
    ///
    /// - Parameters:
    ///   - url: where to.
    ///   - method: GET by default.
    ///   - parameters: what is encoded into query or body; `nil` for none.
    ///   - encoding: how; by default into the query for GET, HEAD and DELETE, into a form body for others.
    ///   - headers: header fields; they replace the session's of the same name.
    ///   - interceptor: adapts this request and decides about its retries, before the session's; `nil` for none.
    @discardableResult
    public func request(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil
    ) -> DataRequest {
        guard parameters == nil, !isSubclassed else {
            return request(
                RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers),
                interceptor: interceptor)
        }
        return makeDataRequest(isStreamed: false, interceptor) { try Requestable(url, method, headers) }
    }

    /// Makes a request of a `URLRequest`, with an interceptor of its own.
    @discardableResult
    public func request(_ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)?) -> DataRequest {
        guard interceptor != nil else { return request(urlRequest) }
        return makeDataRequest(isStreamed: false, interceptor) { try Requestable(urlRequest) }
    }

    /// Makes a request whose body is read as it comes: nothing of it is received before ``DataRequest/bodyStream()`` wants it.
    ///
    /// Parameters as in ``request(_:method:parameters:encoding:headers:interceptor:)``. It has an HTTP/2 connection to itself, as long
    /// pauses would hold up others on it.
    @discardableResult
    public func streamRequest(
        _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
        encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil
    ) -> DataRequest {
        streamRequest(
            RequestParts(url: url, method: method, parameters: parameters, encoding: encoding, headers: headers), interceptor: interceptor)
    }

    /// Makes a request of a `URLRequest`, whose body is read as it comes.
    @discardableResult
    public func streamRequest(_ urlRequest: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil) -> DataRequest {
        makeDataRequest(isStreamed: true, interceptor) { try Requestable(urlRequest, isStreamed: true) }
    }

    func makeDataRequest(
        isStreamed: Bool, _ interceptor: (any RequestInterceptor)?, _ requestable: () throws -> Requestable
    ) -> DataRequest {
        perform(
            DataRequest(
                original: original(Request.RequestTask.data, requestable),
                session: session, sessionDelegate: delegate, receiver: makeReceiver(isStreamed: isStreamed), interceptor: interceptor))
    }

    /// Receives the body of a data or upload request.
    func makeReceiver(isStreamed: Bool = false) -> DataReceiver {
        DataReceiver(limit: session.configuration.maximumBodySize, waitsForReader: isStreamed)
    }
}
