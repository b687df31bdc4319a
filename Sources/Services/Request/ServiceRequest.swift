// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request as a value: what it sends, what it expects, and how the response is decoded.
///
/// ```swift
/// struct UserRequest: JSONServiceRequest {
///     typealias Result = User
///     let id: Int
///     var routes: HTTPRoute { ["users", id] }
/// }
///
/// let user = try await UserRequest(id: 7).schedule(with: api).value
/// ```
///
/// It says nothing of the service's URL or of what all requests have in common: that belongs to the ``HTTPService``, so that the same
/// request works with a production service and one for tests.
///
/// All members but ``Result`` have a default, ``decode(_:)`` for some results: one of another name or type than a requirement's is a
/// different member and is never used.
public protocol ServiceRequest: NetworkServiceRequest {
    /// The type that the response is decoded as.
    associatedtype Result: Sendable

    // MARK: Request specification

    /// The method; GET by default.
    var method: HTTPMethod { get }

    /// The body; ``HTTPData/Empty`` by default. A GET, HEAD or DELETE request with a body fails with
    /// ``ServiceError/invalidRequest(message:)``.
    @HTTPBodyBuilder var body: any HTTPBody { get }

    /// Modifies the request, as the last step before it is sent, for each attempt; returns it unchanged by default.
    ///
    /// A body set here is sent instead of ``body``, even if that is a file; a body removed here is not sent. The log still describes
    /// ``body``. An error thrown here, other than a ``ServiceError``, becomes the cause of ``ServiceError/unknown(_:)``.
    func prepare(_ request: URLRequest) throws -> URLRequest

    // MARK: Expected response

    /// The status codes that count as success; 200 to 299 by default. Others fail with
    /// ``ServiceError/requestFailed(statusCode:response:in:)``.
    var acceptedStatusCodes: ClosedRange<Int> { get }

    /// Decodes the response's body.
    ///
    /// An error thrown here fails the attempt, and the retrier is asked as after any other failure; other than a ``ServiceError``, it
    /// becomes the cause of ``ServiceError/unknown(_:)``. There are defaults for the results `Void`, `Data`, and `String` (in UTF-8).
    func decode(_ data: Data) throws -> Result
}

extension ServiceRequest {
    /// GET.
    public var method: HTTPMethod { .get }
    /// No body.
    public var body: any HTTPBody { HTTPData.Empty() }
    /// Returns the request unchanged.
    public func prepare(_ request: URLRequest) throws -> URLRequest { request }
    /// 200 to 299.
    public var acceptedStatusCodes: ClosedRange<Int> { 200...299 }

    // MARK: Scheduling

    /// Returns the response of this request from a service. There is no other way to get one.
    ///
    /// Nothing is built or sent until its value or header is requested. See ``ServiceResponse``.
    public func schedule<Service: HTTPService>(with service: Service) -> ServiceResponse<Self, Service> {
        ServiceResponse(request: self, service: service)
    }
}

extension ServiceRequest where Result == Void {
    /// Accepts any body.
    public func decode(_ data: Data) throws {}
}

extension ServiceRequest where Result == Data {
    /// Returns the body unchanged.
    public func decode(_ data: Data) throws -> Data { data }
}

extension ServiceRequest where Result == String {
    /// Decodes the body as UTF-8.
    ///
    /// - Throws: ``ServiceError/decodingFailed`` if it is not valid UTF-8.
    public func decode(_ data: Data) throws -> String {
        guard let text = String(data: data, encoding: .utf8) else { throw ServiceError.decodingFailed }
        return text
    }
}

/// A request whose response is JSON (RFC 8259).
///
/// All members but ``ServiceRequest/Result`` have a default: one of another name or type than a requirement's is a different member and is
/// never used.
public protocol JSONServiceRequest: ServiceRequest where Result: Decodable {
    /// Whether keys in snake case are converted to camel case; `true` by default.
    var decodesSnakeCase: Bool { get }

    /// The decoder of the response; by default a `JSONDecoder` that honours ``decodesSnakeCase``.
    var decoder: JSONDecoder { get }
}

extension JSONServiceRequest {
    /// `true`: keys in snake case are converted to camel case.
    public var decodesSnakeCase: Bool { true }

    /// A `JSONDecoder` that honours ``decodesSnakeCase``.
    public var decoder: JSONDecoder {
        .forServices(fromSnakeCase: decodesSnakeCase)
    }

    /// Decodes the response; an empty one as `nil`, if the result is optional.
    public func decode(_ data: Data) throws -> Result {
        if data.isEmpty, let none = Serializers.none(of: Result.self) { return none }
        return try decoder.decode(Result.self, from: data)
    }
}
