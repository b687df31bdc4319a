// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension SessionManager {
    /// Returns the pages at a URL, each requested when it is asked for, and decoded.
    ///
    /// ```swift
    /// for try await user in manager.pages(of: [User].self, from: "https://api.example.org/users").elements() { … }
    /// ```
    ///
    /// Never throws; each iteration starts at the first page. The error of a page's request ends the sequence, and so does a
    /// ``PaginationError`` after a page that leads to none that may be requested. Cancelling the iterating task cancels the request in
    /// flight. A deadline of that task bounds all pages, one of the options each. The sequence retains the manager.
    ///
    /// - Parameters:
    ///   - type: the type of a page's body.
    ///   - url: the URL of the first page.
    ///   - scheme: how a page leads to the next one; by default, by the `Link` field with the relation type `next` (RFC 8288).
    ///   - headers: header fields of each request.
    ///   - decoder: a `JSONDecoder` by default.
    ///   - validation: adds the validations of each request; `validate()` by default.
    ///   - interceptor: adapts each request and decides about its retries, before the session's; `nil`, the default, for none.
    ///   - options: the settings of each request; `nil`, the default, for the session's.
    public func pages<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, from url: any URLConvertible, by scheme: PaginationScheme<Value> = .link(),
        headers: HTTPHeaders? = nil, decoder: any DataDecoder = JSONDecoder(),
        validation: @escaping @Sendable (DataRequest) -> DataRequest = { $0.validate() }, interceptor: (any RequestInterceptor)? = nil,
        options: RequestOptions? = nil
    ) -> PageSequence<ResponsePage<Value>> {
        makePages(Result { try URLRequest(url: url, method: .get, headers: headers) }, scheme, decoder, validation, interceptor, options)
    }

    /// Returns the pages of a `URLRequest`, which may have a body. Parameters as in
    /// ``pages(of:from:by:headers:decoder:validation:interceptor:options:)``.
    public func pages<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, from urlRequest: any URLRequestConvertible, by scheme: PaginationScheme<Value> = .link(),
        decoder: any DataDecoder = JSONDecoder(), validation: @escaping @Sendable (DataRequest) -> DataRequest = { $0.validate() },
        interceptor: (any RequestInterceptor)? = nil, options: RequestOptions? = nil
    ) -> PageSequence<ResponsePage<Value>> {
        makePages(Result { try urlRequest.asURLRequest() }, scheme, decoder, validation, interceptor, options)
    }

    private func makePages<Value: Decodable & Sendable>(
        _ first: Result<URLRequest, any Error>, _ scheme: PaginationScheme<Value>, _ decoder: any DataDecoder,
        _ validation: @escaping @Sendable (DataRequest) -> DataRequest, _ interceptor: (any RequestInterceptor)?,
        _ options: RequestOptions?
    ) -> PageSequence<ResponsePage<Value>> {
        PageSequence(by: scheme) { [self] location, foreignTo in
            let urlRequest = try first.get().page(at: location)
            let options = foreignTo.map { (options ?? RequestOptions()).withoutCredentials(of: $0) } ?? options
            let response = await validation(request(urlRequest, interceptor: interceptor, options: options))
                .serializingDecodable(Value.self, decoder: decoder).response
            return LoadedPage(
                value: try response.result.get(), headers: response.responseHead?.headers ?? [:], requestURL: urlRequest.url,
                responseURL: response.response?.url)
        }
    }
}

extension URLRequest {
    /// Returns the request of a page.
    fileprivate func page(at location: PageLocation) throws -> URLRequest {
        var result = self
        switch location {
        case .query(let items):
            guard let url, var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return self }
            components.percentEncodedQuery = items.appended(to: components.percentEncodedQuery)
            result.url = try components.asURL()
        case .url(let url): result.url = url
        case .request(let request): result = request
        }
        return result
    }
}
