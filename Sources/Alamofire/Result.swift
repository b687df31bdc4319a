// SPDX-License-Identifier: Apache-2.0
import CurlewCore

/// The result of a request, with Alamofire's single type parameter: Swift's `Result` with any error as its failure.
public typealias Result<Value> = Swift.Result<Value, any Error>

// Properties and functions but no conformances, since those would apply to the whole program.

extension Swift.Result {
    /// Whether the result is a success.
    public var isSuccess: Bool { if case .success = self { true } else { false } }

    /// Whether the result is a failure.
    public var isFailure: Bool { !isSuccess }

    /// The value; `nil` for a failure.
    public var value: Success? { if case .success(let value) = self { value } else { nil } }

    /// The error; `nil` for a success.
    public var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }

    /// `SUCCESS` or `FAILURE`.
    public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

    /// `SUCCESS` with the value, or `FAILURE` with the error, on one line: control characters are escaped.
    public var debugDescription: String { summary }

    /// Returns the value.
    ///
    /// - Throws: the error of a failure.
    public func unwrap() throws -> Success {
        try get()
    }

    /// Calls `closure` with the value of a success; returns the result itself.
    @discardableResult
    public func withValue(_ closure: (Success) throws -> Void) rethrows -> Self {
        if case .success(let value) = self { try closure(value) }
        return self
    }

    /// Calls `closure` with the error of a failure; returns the result itself.
    @discardableResult
    public func withError(_ closure: (any Error) throws -> Void) rethrows -> Self {
        if case .failure(let error) = self { try closure(error) }
        return self
    }

    /// Calls `closure` for a success; returns the result itself.
    @discardableResult
    public func ifSuccess(_ closure: () throws -> Void) rethrows -> Self {
        if isSuccess { try closure() }
        return self
    }

    /// Calls `closure` for a failure; returns the result itself.
    @discardableResult
    public func ifFailure(_ closure: () throws -> Void) rethrows -> Self {
        if isFailure { try closure() }
        return self
    }
}

extension Swift.Result where Failure == any Error {
    /// The type of a success's value.
    public typealias Value = Success

    /// Creates a result from what a closure returns or throws.
    @_disfavoredOverload
    public init(value: () throws -> Success) {
        self.init(catching: value)
    }

    /// Returns the result with its value transformed; an error thrown by `transform` becomes the failure.
    ///
    /// Swift's function of that name differs: its closure returns a result.
    public func flatMap<T>(_ transform: (Success) throws -> T) -> Result<T> {
        flatMap { value in Result<T> { try transform(value) } }
    }

    /// Returns the result with its error transformed; a success is unchanged.
    public func mapError<T: Error>(_ transform: (any Error) -> T) -> Result<Success> {
        switch self {
        case .success: self
        case .failure(let error): .failure(transform(error))
        }
    }

    /// Returns the result with its error transformed; an error thrown by `transform` becomes the failure.
    public func flatMapError<T: Error>(_ transform: (any Error) throws -> T) -> Result<Success> {
        guard case .failure(let error) = self else { return self }
        return Result { throw try transform(error) }
    }
}
