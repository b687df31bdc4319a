// SPDX-License-Identifier: Apache-2.0
import CurlewCore

/// The result of a request, with Alamofire's one parameter: Swift's `Result` whose failure may be any error.
public typealias Result<Value> = Swift.Result<Value, any Error>

// Properties and functions, and no conformances: those would hold for the whole program.

extension Swift.Result {
    /// Whether there is a value.
    public var isSuccess: Bool { if case .success = self { true } else { false } }

    /// Whether there is an error.
    public var isFailure: Bool { !isSuccess }

    /// The value, if there is one.
    public var value: Success? { if case .success(let value) = self { value } else { nil } }

    /// The error, if there is one.
    public var error: (any Error)? { if case .failure(let error) = self { error } else { nil } }

    /// `SUCCESS` or `FAILURE`.
    public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

    /// `SUCCESS` with the value, or `FAILURE` with the error, in a line: control characters are escaped.
    public var debugDescription: String { summary }

    /// The value.
    ///
    /// - Throws: the error, if there is no value.
    public func unwrap() throws -> Success {
        try get()
    }

    /// Calls `closure` with the value, if there is one; the result itself.
    @discardableResult
    public func withValue(_ closure: (Success) throws -> Void) rethrows -> Self {
        if case .success(let value) = self { try closure(value) }
        return self
    }

    /// Calls `closure` with the error, if there is one; the result itself.
    @discardableResult
    public func withError(_ closure: (any Error) throws -> Void) rethrows -> Self {
        if case .failure(let error) = self { try closure(error) }
        return self
    }

    /// Calls `closure` if there is a value; the result itself.
    @discardableResult
    public func ifSuccess(_ closure: () throws -> Void) rethrows -> Self {
        if isSuccess { try closure() }
        return self
    }

    /// Calls `closure` if there is an error; the result itself.
    @discardableResult
    public func ifFailure(_ closure: () throws -> Void) rethrows -> Self {
        if isFailure { try closure() }
        return self
    }
}

extension Swift.Result where Failure == any Error {
    /// What a success holds.
    public typealias Value = Success

    /// Makes a result of what a closure returns or throws.
    @_disfavoredOverload
    public init(value: () throws -> Success) {
        self.init(catching: value)
    }

    /// The result with its value changed by something that may throw, which is then its failure.
    ///
    /// Unlike Swift's function of that name, whose closure returns a result.
    public func flatMap<T>(_ transform: (Success) throws -> T) -> Result<T> {
        flatMap { value in Result<T> { try transform(value) } }
    }

    /// The result with its error changed; a value stays.
    public func mapError<T: Error>(_ transform: (any Error) -> T) -> Result<Success> {
        switch self {
        case .success: self
        case .failure(let error): .failure(transform(error))
        }
    }

    /// The result with its error changed by something that may throw, which is then its failure.
    public func flatMapError<T: Error>(_ transform: (any Error) throws -> T) -> Result<Success> {
        guard case .failure(let error) = self else { return self }
        return Result { throw try transform(error) }
    }
}
