// SPDX-License-Identifier: Apache-2.0

extension AsyncSequence where Self: Sendable {
    /// The elements; an error is the end.
    public func ignoreError() -> IgnoringErrors<Self> { IgnoringErrors(base: self) }

    /// The values of those results that are successes; errors of the sequence itself are thrown.
    public func ignoreResultErrors<Value, Failure: Error>() -> AsyncCompactMapSequence<Self, Value>
    where Element == Result<Value, Failure> {
        compactMap { try? $0.get() }
    }
}

/// A sequence that ends where another one throws.
public struct IgnoringErrors<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    /// The other one's.
    public typealias Element = Base.Element

    let base: Base

    /// Iterates the other one.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator

        /// The next element; `nil` at the end, and instead of an error.
        public mutating func next() async -> Base.Element? { try? await base.next() }
    }

    /// Starts at the other one's start.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }
}
