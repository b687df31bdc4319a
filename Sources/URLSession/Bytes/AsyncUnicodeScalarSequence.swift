// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

/// The Unicode scalars of a sequence of bytes in UTF-8. Invalid bytes become U+FFFD, as many as in a `String` of them.
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A scalar.
    public typealias Element = UnicodeScalar
    /// Reads scalars.
    public typealias AsyncIterator = Iterator

    @usableFromInline let base: Base

    @inlinable init(_ base: Base) {
        self.base = base
    }

    /// Returns an iterator of the scalars from where the bytes are read.
    @inlinable public func makeAsyncIterator() -> Iterator { Iterator(base.makeAsyncIterator()) }

    /// Reads scalars.
    public struct Iterator: AsyncIteratorProtocol {
        /// A scalar.
        public typealias Element = UnicodeScalar

        @usableFromInline var base: Base.AsyncIterator
        @usableFromInline var decoder = ScalarDecoder()

        @inlinable init(_ base: Base.AsyncIterator) {
            self.base = base
        }

        /// Returns the next scalar; `nil` at the end of the bytes.
        ///
        /// - Throws: what reading the bytes throws.
        @inlinable public mutating func next() async rethrows -> UnicodeScalar? {
            if let scalar = decoder.takeHeld() { return scalar }
            repeat {
                while let byte = base.takeReceived() {
                    if let scalar = decoder.take(byte) { return scalar }
                }
                guard let byte = try await base.next() else { return decoder.end() }
                if let scalar = decoder.take(byte) { return scalar }
            } while true
        }

        /// Returns the next scalar, as ``next()`` does, on the actor of the caller.
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, *)
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> UnicodeScalar? {
            if let scalar = decoder.takeHeld() { return scalar }
            repeat {
                while let byte = base.takeReceived() {
                    if let scalar = decoder.take(byte) { return scalar }
                }
                guard let byte = try await base.next(isolation: actor) else { return decoder.end() }
                if let scalar = decoder.take(byte) { return scalar }
            } while true
        }
    }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncUnicodeScalarSequence.Iterator: Sendable {}

/// Decodes UTF-8 byte by byte: the longest beginning of a scalar that is not continued is one U+FFFD (the Unicode Standard, section 3.9).
@usableFromInline
struct ScalarDecoder {
    /// The bits of the scalar that has begun.
    @usableFromInline var value: UInt32 = 0
    /// The number of bytes that it lacks.
    @usableFromInline var missing = 0
    /// What its next byte may be: less than all after some first bytes, so that there are no surrogates and no longer forms.
    @usableFromInline var allowed: ClosedRange<UInt8> = 0x80...0xBF
    /// A byte that has ended an incomplete scalar.
    @usableFromInline var held: UInt8?

    @inlinable init() {}

    /// Takes the byte that has ended an incomplete scalar, if there is one.
    @inlinable mutating func takeHeld() -> UnicodeScalar? {
        guard let byte = held else { return nil }
        held = nil
        return take(byte)
    }

    /// Takes a byte; returns the scalar that it ends.
    @inlinable mutating func take(_ byte: UInt8) -> UnicodeScalar? {
        guard missing > 0 else { return begin(byte) }
        guard allowed.contains(byte) else {
            held = byte
            return end()
        }
        value = value << 6 | UInt32(byte & 0x3F)
        missing -= 1
        allowed = 0x80...0xBF
        return missing == 0 ? UnicodeScalar(value) ?? "\u{FFFD}" : nil
    }

    /// Ends the bytes: returns U+FFFD if a scalar is incomplete.
    @inlinable mutating func end() -> UnicodeScalar? {
        guard missing > 0 else { return nil }
        missing = 0
        allowed = 0x80...0xBF
        return "\u{FFFD}"
    }

    @inlinable mutating func begin(_ byte: UInt8) -> UnicodeScalar? {
        switch byte {
        case 0...0x7F: return UnicodeScalar(byte)
        case 0xC2...0xDF: (value, missing) = (UInt32(byte & 0x1F), 1)
        case 0xE0...0xEF: (value, missing) = (UInt32(byte & 0x0F), 2)
        case 0xF0...0xF4: (value, missing) = (UInt32(byte & 0x07), 3)
        default: return "\u{FFFD}"
        }
        switch byte {
        case 0xE0: allowed = 0xA0...0xBF
        case 0xED: allowed = 0x80...0x9F
        case 0xF0: allowed = 0x90...0xBF
        case 0xF4: allowed = 0x80...0x8F
        default: break
        }
        return nil
    }
}
