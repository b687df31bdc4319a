// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

/// The characters, which are grapheme clusters, of a sequence of bytes in UTF-8. Invalid bytes become U+FFFD.
///
/// A character is returned when the next one has begun, as marks may follow it, and the last one at the end.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A character.
    public typealias Element = Character
    /// Reads characters.
    public typealias AsyncIterator = Iterator

    @usableFromInline let base: AsyncUnicodeScalarSequence<Base>

    @inlinable init(_ base: Base) {
        self.base = AsyncUnicodeScalarSequence(base)
    }

    /// Returns an iterator of the characters from where the bytes are read.
    @inlinable public func makeAsyncIterator() -> Iterator { Iterator(base.makeAsyncIterator()) }

    /// Reads characters.
    public struct Iterator: AsyncIteratorProtocol {
        /// A character.
        public typealias Element = Character

        @usableFromInline var base: AsyncUnicodeScalarSequence<Base>.Iterator
        @usableFromInline var joiner = ScalarJoiner()

        @inlinable init(_ base: AsyncUnicodeScalarSequence<Base>.Iterator) {
            self.base = base
        }

        /// Returns the next character; `nil` at the end of the bytes.
        ///
        /// - Throws: what reading the bytes throws.
        @inlinable public mutating func next() async rethrows -> Character? {
            while let scalar = try await base.next() {
                if let character = joiner.take(scalar) { return character }
            }
            return joiner.end()
        }

        /// Returns the next character, as ``next()`` does, on the actor of the caller.
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, *)
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Character? {
            while let scalar = try await base.next(isolation: actor) {
                if let character = joiner.take(scalar) { return character }
            }
            return joiner.end()
        }
    }
}

@available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
extension AsyncCharacterSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncCharacterSequence.Iterator: Sendable {}

/// Joins scalars to characters, in constant time for each: a `String` to which one is appended has to be read from its beginning.
@available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
@usableFromInline
struct ScalarJoiner {
    @usableFromInline var scalars = String.UnicodeScalarView()
    @usableFromInline var recognizer = Unicode._CharacterRecognizer()

    @inlinable init() {}

    /// Takes a scalar; returns the character before it if it begins another one.
    @inlinable mutating func take(_ scalar: UnicodeScalar) -> Character? {
        let character = recognizer.hasBreak(before: scalar) ? end() : nil
        scalars.append(scalar)
        return character
    }

    /// Ends a character; `nil` if there is none.
    @inlinable mutating func end() -> Character? {
        guard !scalars.isEmpty else { return nil }
        defer { scalars = String.UnicodeScalarView() }
        return Character(String(scalars))
    }
}
