// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

extension URLSession.AsyncBytes {
    /// The lines of the body, in UTF-8.
    @inlinable public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

    /// The characters of the body, in UTF-8.
    @available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
    @inlinable public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

    /// The Unicode scalars of the body, in UTF-8.
    @inlinable public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}

// Foundation has these on Apple's systems; its own take precedence where it has them.

extension AsyncSequence where Element == UInt8 {
    /// The lines of the bytes, in UTF-8.
    @_disfavoredOverload @inlinable public var lines: AsyncLineSequence<Self> { AsyncLineSequence(self) }

    /// The characters of the bytes, in UTF-8.
    @available(macOS 14, iOS 17, tvOS 17, watchOS 10, *)
    @_disfavoredOverload @inlinable public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(self) }

    /// The Unicode scalars of the bytes, in UTF-8.
    @_disfavoredOverload @inlinable public var unicodeScalars: AsyncUnicodeScalarSequence<Self> { AsyncUnicodeScalarSequence(self) }
}
