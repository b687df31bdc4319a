// SPDX-License-Identifier: Apache-2.0
import CurlewURLLoading

// What is read of a response's bytes takes those that have been received without an asynchronous call for each, which costs more than all
// the rest. An iterator of a generic sequence is known to be that of a response only by its type.

extension AsyncIteratorProtocol where Element == UInt8 {
    /// Takes a byte that has been received; `nil` if there is none, and for other sequences.
    @inlinable mutating func takeReceived() -> UInt8? {
        withReceived { $0.takeReceived() }
    }

    /// Takes bytes that have been received, to the end of a line; `nil` if its end has not been, and for other sequences.
    @inlinable mutating func takeReceivedLine(_ splitter: inout LineSplitter) -> String? {
        withReceived { $0.takeReceivedLine(&splitter) }
    }

    @inlinable @inline(__always)
    mutating func withReceived<Result>(_ body: (inout URLSession.AsyncBytes.Iterator) -> Result?) -> Result? {
        guard Self.self == URLSession.AsyncBytes.Iterator.self else { return nil }
        return withUnsafeMutablePointer(to: &self) { pointer in
            body(&UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: URLSession.AsyncBytes.Iterator.self).pointee)
        }
    }
}

extension URLSession.AsyncBytes.Iterator {
    @inlinable @inline(__always)
    mutating func takeReceived() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    @usableFromInline
    mutating func takeReceivedLine(_ splitter: inout LineSplitter) -> String? {
        while position < bytes.count {
            var end = position
            while end < bytes.count, !LineSplitter.mayEndLine(bytes[end]) { end += 1 }
            splitter.line.append(contentsOf: bytes[position..<end])
            position = end
            if let byte = takeReceived(), let line = splitter.take(byte) { return line }
        }
        return nil
    }
}
