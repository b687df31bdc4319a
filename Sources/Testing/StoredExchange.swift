// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewLoopback
import CurlewTransport

/// A request and its response, or failure, as a ``Cassette`` stores them: redacted.
public struct StoredExchange: Sendable {
    /// How an exchange ended.
    public enum Outcome: Sendable {
        /// With a response, whose body is decoded.
        case response(status: Int, headers: HTTPHeaders, body: Data, trailers: HTTPHeaders)
        /// With a failure of the transfer, before a response.
        case failure(TransferFailure.Kind, message: String)
    }

    /// The method.
    public let method: String
    /// The URL.
    public let url: String
    /// The header fields of the request.
    public let headers: HTTPHeaders
    /// The body of the request.
    public let body: Data
    /// The response, or the failure.
    public let outcome: Outcome

    /// Creates an exchange.
    public init(method: String, url: String, headers: HTTPHeaders = [:], body: Data = Data(), outcome: Outcome) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.outcome = outcome
    }

    var contentType: String? { headers["Content-Type"] }

    /// The exchange without the values that the rules hide.
    func redacted(by redaction: CassetteRedaction) -> StoredExchange {
        let outcome: Outcome =
            switch outcome {
            case .response(let status, let headers, let body, let trailers):
                .response(
                    status: status, headers: redaction.headers(headers), body: redaction.body(body, type: headers["Content-Type"]),
                    trailers: redaction.headers(trailers))
            case .failure(let kind, let message): .failure(kind, message: redaction.url(message))
            }
        return StoredExchange(
            method: method, url: redaction.url(url), headers: redaction.headers(headers), body: redaction.body(body, type: contentType),
            outcome: outcome)
    }

    /// The response as one of a mock.
    var response: MockResponse {
        switch outcome {
        case .response(let status, let headers, let body, let trailers):
            // The length of a redacted or decoded body is another one; a response to HEAD keeps it.
            var fields = headers
            if method != HTTPMethod.head.rawValue {
                fields.remove(name: "Content-Length")
                fields.remove(name: "Transfer-Encoding")
            }
            return MockResponse.status(status, headers: fields, data: body).trailers(trailers)
        case .failure(let kind, let message): return .failure(kind, message: message)
        }
    }
}

// MARK: - CustomStringConvertible

extension StoredExchange: CustomStringConvertible, CustomReflectable {
    /// Method, URL and outcome, with the URL redacted (`Redaction`).
    public var description: String {
        switch outcome {
        case .response(let status, _, _, _): "\(method) \(url.redactedURL): \(status)"
        case .failure(let kind, _): "\(method) \(url.redactedURL): \(kind.rawValue)"
        }
    }

    /// The description only, as an exchange of a program's own may not be redacted.
    public var customMirror: Mirror { .redacted(self, ["exchange": description]) }
}

// MARK: - The file

/// The file of an exchange, in JSON; the bodies are in files beside it.
struct ExchangeFile: Codable {
    struct Field: Codable {
        let name: String
        let value: String
    }

    struct Request: Codable {
        let method: String
        let url: String
        let headers: [Field]
        /// The name of the body's file; `nil` for none.
        let body: String?
    }

    struct Response: Codable {
        let status: Int
        let headers: [Field]
        let body: String?
        let trailers: [Field]?
    }

    struct Failure: Codable {
        let kind: String
        let message: String
    }

    /// The version of the format.
    static let version = 1

    let version: Int
    let request: Request
    let response: Response?
    let failure: Failure?

    init(_ exchange: StoredExchange, requestBody: String?, responseBody: String?) {
        version = Self.version
        request = Request(method: exchange.method, url: exchange.url, headers: Self.fields(exchange.headers), body: requestBody)
        switch exchange.outcome {
        case .response(let status, let headers, _, let trailers):
            response = Response(
                status: status, headers: Self.fields(headers), body: responseBody, trailers: trailers.isEmpty ? nil : Self.fields(trailers))
            failure = nil
        case .failure(let kind, let message):
            response = nil
            failure = Failure(kind: kind.rawValue, message: message)
        }
    }

    /// Returns the exchange, with the bodies that a closure reads.
    func exchange(_ body: (String) throws -> Data) throws -> StoredExchange {
        guard version == Self.version else { throw CassetteError("is of version \(version) of the format") }
        let outcome: StoredExchange.Outcome
        if let response {
            outcome = .response(
                status: response.status, headers: Self.headers(response.headers), body: try response.body.map(body) ?? Data(),
                trailers: Self.headers(response.trailers ?? []))
        } else if let failure {
            outcome = .failure(TransferFailure.Kind(rawValue: failure.kind), message: failure.message)
        } else {
            throw CassetteError("has neither a response nor a failure")
        }
        return StoredExchange(
            method: request.method, url: request.url, headers: Self.headers(request.headers), body: try request.body.map(body) ?? Data(),
            outcome: outcome)
    }

    private static func fields(_ headers: HTTPHeaders) -> [Field] { headers.map { Field(name: $0.name, value: $0.value) } }

    private static func headers(_ fields: [Field]) -> HTTPHeaders {
        HTTPHeaders(fields.map { HTTPHeader(name: $0.name, value: $0.value) })
    }
}
