// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A request as a value: what it asks for, what it expects, and how the response becomes a result.
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
/// It says nothing of where the service is, or of what all requests carry: that is the ``HTTPService``'s, so that the same request works
/// with a service for production and one for tests.
public protocol ServiceRequest: NetworkServiceRequest {
    /// What the response becomes.
    associatedtype Result: Sendable

    // MARK: Request specification

    /// The method; GET by default.
    var method: HTTPMethod { get }

    /// The body; ``HTTPData/Empty`` by default. A GET or DELETE with another one fails with ``ServiceError/invalidRequest(message:)``.
    @HTTPBodyBuilder var body: any HTTPBody { get }

    /// Changes the request, as the last step before it is sent, for each attempt; by default not at all.
    ///
    /// A body that it sets is sent in place of ``body``, a file too, and one that it removes is not sent. The log still describes ``body``.
    /// What it throws, other than a ``ServiceError``, is the cause of ``ServiceError/unknown(_:)``.
    func prepare(_ request: URLRequest) throws -> URLRequest

    // MARK: Expected response

    /// The statuses that are a success; 200 to 299 by default. Others fail with ``ServiceError/requestFailed(statusCode:response:)``.
    var acceptedStatusCodes: ClosedRange<Int> { get }

    /// Makes the result of the response's body.
    ///
    /// What it throws fails the request, and the retrier is asked as after any other failure; other than a ``ServiceError``, it is the cause
    /// of ``ServiceError/unknown(_:)``. There is a default where the result is `Void`, `Data` or a `String` in UTF-8.
    func decode(_ data: Data) throws -> Result
}

extension ServiceRequest {
    /// GET.
    public var method: HTTPMethod { .get }
    /// None.
    public var body: any HTTPBody { HTTPData.Empty() }
    /// The request as it is.
    public func prepare(_ request: URLRequest) throws -> URLRequest { request }
    /// 200 to 299.
    public var acceptedStatusCodes: ClosedRange<Int> { 200...299 }

    // MARK: Scheduling

    /// The response of this request from a service; the only way to get one.
    ///
    /// Nothing is built or sent before somebody wants the value. See ``ServiceResponse``.
    public func schedule<Service: HTTPService>(with service: Service) -> ServiceResponse<Self, Service> {
        ServiceResponse(request: self, service: service)
    }
}

extension ServiceRequest where Result == Void {
    /// Whatever came.
    public func decode(_ data: Data) throws {}
}

extension ServiceRequest where Result == Data {
    /// The body as it came.
    public func decode(_ data: Data) throws -> Data { data }
}

extension ServiceRequest where Result == String {
    /// The body as text in UTF-8.
    ///
    /// - Throws: ``ServiceError/decodingFailed`` when it is none.
    public func decode(_ data: Data) throws -> String {
        guard let text = String(data: data, encoding: .utf8) else { throw ServiceError.decodingFailed }
        return text
    }
}

/// A request whose response is JSON (RFC 8259).
public protocol JSONServiceRequest: ServiceRequest where Result: Decodable {
    /// Whether names in snake case become those of properties in camel case; `true` by default.
    var decodesSnakeCase: Bool { get }

    /// What decodes the response; by default a `JSONDecoder` that does as ``decodesSnakeCase`` says.
    var decoder: JSONDecoder { get }
}

extension JSONServiceRequest {
    /// `true`.
    public var decodesSnakeCase: Bool { true }

    /// A decoder that knows of ``decodesSnakeCase``.
    public var decoder: JSONDecoder {
        .forServices(fromSnakeCase: decodesSnakeCase)
    }

    /// Decodes the response.
    public func decode(_ data: Data) throws -> Result {
        try decoder.decode(Result.self, from: data)
    }
}
