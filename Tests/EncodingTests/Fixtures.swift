// SPDX-License-Identifier: Apache-2.0

import CurlewEncoding
import CurlewHTTP
import Testing

/// Returns a request to encode into.
func request(_ url: String = "https://example.org/path", _ method: HTTPMethod = .get, headers: HTTPHeaders? = nil) throws -> URLRequest {
    try URLRequest(url: url, method: method, headers: headers)
}

/// A request whose conversion fails.
struct NoRequest: URLRequestConvertible {
    struct Failure: Error, Equatable {}

    func asURLRequest() throws -> URLRequest { throw Failure() }
}

/// A named value, created for each test because `Any` is not `Sendable`.
struct Sample<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let value: @Sendable () -> Any
    let expected: Expected

    init(_ name: String, _ value: @autoclosure @escaping @Sendable () -> Any, _ expected: Expected) {
        testDescription = name
        self.value = value
        self.expected = expected
    }
}

extension Sample where Expected == Void {
    init(_ name: String, _ value: @autoclosure @escaping @Sendable () -> Any) {
        self.init(name, value(), ())
    }
}

/// Returns nested arrays.
func nested(_ levels: Int) -> Any {
    (0..<levels).reduce(into: 0 as Any) { value, _ in value = [value] }
}

extension URLRequest {
    /// The body as a string.
    var bodyText: String? { httpBody.map { String(decoding: $0, as: UTF8.self) } }
}

extension CurlewError {
    /// The error of Foundation, or of the validation before it, for parameters that are not valid in JSON.
    var jsonEncodingError: (any Error)? {
        if case .parameterEncodingFailed(.jsonEncodingFailed(let error), _) = self { error } else { nil }
    }

    /// The error of Foundation, or of the validation before it, for parameters that are not valid in a property list.
    var propertyListEncodingError: (any Error)? {
        if case .parameterEncodingFailed(.propertyListEncodingFailed(let error), _) = self { error } else { nil }
    }
}
