// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP

/// A page of a request: its result, and the details of its response.
public typealias ServicePage<Value: Sendable> = ResponsePage<Value>

extension ResponsePage {
    /// The header fields of the response, by the name that ``ServiceResponse/header`` has.
    public var header: HTTPHeaders { headers }
}

extension ServiceRequest {
    /// Returns the pages of this request from a service, linked by a scheme, each fetched on demand.
    ///
    /// ```swift
    /// for try await user in UsersRequest().pages(from: api, by: .link()).elements() { … }
    /// ```
    ///
    /// A page that leads to none that may be requested (``/CurlewCore/PaginationError``) ends the sequence with
    /// ``ServiceError/invalidResponse``.
    public func pages<Service: HTTPService>(from service: Service, by scheme: PaginationScheme<Result>) -> PageSequence<ServicePage<Result>>
    {
        PageSequence(by: scheme) { location, foreignTo in
            let request = PageRequest(base: self, location: location, foreignTo: foreignTo) { try decode($0) }
            let success = try await request.schedule(with: service).success()
            return LoadedPage(
                value: success.result, headers: success.header, requestURL: success.requestURL, responseURL: success.responseURL)
        } fail: { error in
            service.mapError(ServiceError(error))
        }
    }
}
