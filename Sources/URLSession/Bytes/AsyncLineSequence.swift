// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

/// The lines of a sequence of bytes in UTF-8, without their ends and without empty ones.
///
/// A line ends with LF, CR, CR LF, VT, FF, U+0085, U+2028 or U+2029, the last one also with the sequence. Invalid bytes become U+FFFD. A line
/// is returned as soon as its end is read. Its length has no limit: read bytes from a server that is not trusted.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A line.
    public typealias Element = String
    /// Reads lines.
    public typealias AsyncIterator = Iterator

    @usableFromInline let base: Base

    @inlinable init(_ base: Base) {
        self.base = base
    }

    /// Returns an iterator of the lines from where the bytes are read.
    @inlinable public func makeAsyncIterator() -> Iterator { Iterator(base.makeAsyncIterator()) }

    /// Reads lines.
    public struct Iterator: AsyncIteratorProtocol {
        /// A line.
        public typealias Element = String

        @usableFromInline var base: Base.AsyncIterator
        @usableFromInline var splitter = LineSplitter()

        @inlinable init(_ base: Base.AsyncIterator) {
            self.base = base
        }

        /// Returns the next line that is not empty; `nil` at the end of the bytes.
        ///
        /// - Throws: what reading the bytes throws; the part of a line before it is lost.
        @inlinable public mutating func next() async rethrows -> String? {
            repeat {
                if let line = base.takeReceivedLine(&splitter) { return line }
                guard let byte = try await base.next() else { return splitter.end() }
                if let line = splitter.take(byte) { return line }
            } while true
        }

        /// Returns the next line, as ``next()`` does, on the actor of the caller.
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, *)
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> String? {
            repeat {
                if let line = base.takeReceivedLine(&splitter) { return line }
                guard let byte = try await base.next(isolation: actor) else { return splitter.end() }
                if let line = splitter.take(byte) { return line }
            } while true
        }
    }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}

@available(*, unavailable)
extension AsyncLineSequence.Iterator: Sendable {}

/// Splits bytes into lines that are not empty.
@usableFromInline
struct LineSplitter {
    @usableFromInline var line: [UInt8] = []

    @inlinable init() {}

    /// Whether a byte is the last one of a line's end, or may be.
    @inlinable static func mayEndLine(_ byte: UInt8) -> Bool { 0x0A...0x0D ~= byte || byte == 0x85 || byte == 0xA8 || byte == 0xA9 }

    /// Takes a byte; returns the line that it ends, unless that is empty. The LF of a CR LF ends an empty one.
    @inlinable mutating func take(_ byte: UInt8) -> String? {
        switch byte {
        case 0x0A...0x0D: return end()
        // The last byte of U+0085, C2 85, and those of U+2028 and U+2029, E2 80 A8 and E2 80 A9: what is before them always begins a scalar.
        case 0x85 where line.last == 0xC2: return end(dropping: 1)
        case 0xA8, 0xA9:
            let count = line.count
            guard count >= 2, line[count - 1] == 0x80, line[count - 2] == 0xE2 else { break }
            return end(dropping: 2)
        default: break
        }
        line.append(byte)
        return nil
    }

    /// Ends a line; returns it unless it is empty.
    @inlinable mutating func end(dropping count: Int = 0) -> String? {
        line.removeLast(count)
        guard !line.isEmpty else { return nil }
        defer { line.removeAll(keepingCapacity: true) }
        return String(decoding: line, as: UTF8.self)
    }
}
