// SPDX-License-Identifier: Apache-2.0

extension AsyncSequence where Self: Sendable {
    /// Returns the elements as a sequence that ends instead of throwing.
    ///
    /// Needs `import CurlewServices`.
    public func ignoreError() -> IgnoringErrors<Self> { IgnoringErrors(base: self) }

    /// Returns the values of the successful results; errors of the sequence itself are still thrown.
    ///
    /// Needs `import CurlewServices`.
    public func ignoreResultErrors<Value, Failure: Error>() -> AsyncCompactMapSequence<Self, Value>
    where Element == Result<Value, Failure> {
        compactMap { try? $0.get() }
    }
}

/// A sequence that ends where its base throws.
public struct IgnoringErrors<Base: AsyncSequence & Sendable>: AsyncSequence, Sendable {
    /// The base's elements.
    public typealias Element = Base.Element

    let base: Base

    /// Iterates over the base.
    public struct AsyncIterator: AsyncIteratorProtocol {
        var base: Base.AsyncIterator

        /// Returns the next element; `nil` at the end and instead of throwing.
        public mutating func next() async -> Base.Element? { try? await base.next() }
    }

    /// Makes an iterator that starts at the base's start.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: base.makeAsyncIterator()) }
}
