// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension AsyncSequence where Element == Data {
    /// Returns the events in these bytes (WHATWG HTML, section 9.2.5), as they arrive.
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// - Parameter maximumEventSize: the maximum size of an event's data, and of a line, in bytes; 16 MiB by default.
    public func serverSentEvents(maximumEventSize: Int = 16 << 20) -> ServerSentEvents<Self> {
        ServerSentEvents(bytes: self, maximumEventSize: maximumEventSize)
    }

    /// Returns the lines in these bytes, as they arrive, without their line breaks (LF or CR LF). Bytes after the last break are a line as
    /// well.
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// - Parameter maximumSize: the maximum size of a line, in bytes; 16 MiB by default.
    public func dataLines(maximumSize: Int = 16 << 20) -> DataLines<Self> {
        DataLines(bytes: self, maximumSize: maximumSize)
    }

    /// Returns the values in these bytes, one JSON text per line, as they arrive; empty lines are skipped.
    ///
    /// Needs `import CurlewEvents`.
    ///
    /// ```swift
    /// for try await entry in manager.streamRequest(url).validate().bodyStream().jsonLines(of: Entry.self) { … }
    /// ```
    ///
    /// - Parameters:
    ///   - type: the type of each line's value.
    ///   - end: the line that ends the sequence: it is not decoded, and the iterator releases the bytes. `nil`, the default, for none.
    ///   - policy: what is done about an invalid line. By default, ``EventStreamError/decodingFailed(data:error:)`` is thrown, and iteration
    ///     may continue with the next line.
    ///   - decoder: must not be modified afterwards.
    ///   - maximumSize: the maximum size of a line, in bytes; 16 MiB by default.
    public func jsonLines<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, until end: String? = nil, onDecodingError policy: DecodingErrorPolicy = .throw,
        decoder: JSONDecoder = JSONDecoder(), maximumSize: Int = 16 << 20
    ) -> JSONLines<Self, Value> {
        JSONLines(lines: dataLines(maximumSize: maximumSize), end: end.map { Data($0.utf8) }, policy: policy, decoder: decoder)
    }
}

/// The events in a sequence of bytes. Throws ``EventStreamError/tooLarge(limit:)``, and the errors of the byte sequence.
public struct ServerSentEvents<Bytes: AsyncSequence>: AsyncSequence where Bytes.Element == Data {
    /// An event.
    public typealias Element = ServerSentEvent

    let bytes: Bytes
    let maximumEventSize: Int

    /// Iterates over the events.
    public struct Iterator: AsyncIteratorProtocol {
        var bytes: Bytes.AsyncIterator
        var parser: ServerSentEventParser
        var portions = Portions()

        /// Returns the next event; `nil` at the end.
        public mutating func next() async throws -> ServerSentEvent? {
            while true {
                if let event = try parser.next() { return event }
                guard let piece = try await portions.next(of: &bytes) else { return nil }
                parser.feed(piece)
            }
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), parser: ServerSentEventParser(maximumEventSize: maximumEventSize))
    }
}

/// The lines in a sequence of bytes. Throws ``EventStreamError/tooLarge(limit:)``, and the errors of the byte sequence.
public struct DataLines<Bytes: AsyncSequence>: AsyncSequence where Bytes.Element == Data {
    /// A line.
    public typealias Element = Data

    let bytes: Bytes
    let maximumSize: Int

    /// Iterates over the lines.
    public struct Iterator: AsyncIteratorProtocol {
        var bytes: Bytes.AsyncIterator
        var lines: LineSplitter
        var portions = Portions()

        /// Returns the next line; `nil` at the end.
        public mutating func next() async throws -> Data? {
            while true {
                // Copied, so that the first index is 0, which a slice's would not be.
                if let line = try lines.next() { return Data(line) }
                guard let piece = try await portions.next(of: &bytes) else { return lines.remainder().map { Data($0) } }
                lines.feed(piece)
            }
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), lines: LineSplitter(.lineFeed, limit: maximumSize))
    }
}

/// The values in lines of JSON.
public struct JSONLines<Bytes: AsyncSequence, Value: Decodable & Sendable>: AsyncSequence where Bytes.Element == Data {
    /// A value.
    public typealias Element = Value

    let lines: DataLines<Bytes>
    let end: Data?
    let policy: DecodingErrorPolicy
    let decoder: JSONDecoder

    /// Iterates over the values.
    public struct Iterator: AsyncIteratorProtocol {
        /// `nil` after the line that ends the sequence.
        var lines: DataLines<Bytes>.Iterator?
        let end: Data?
        let policy: DecodingErrorPolicy
        let decoder: JSONDecoder

        /// Returns the next value; `nil` at the end.
        public mutating func next() async throws -> Value? {
            while let line = try await lines?.next() {
                if line == end {
                    lines = nil
                } else if line.contains(where: { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }),
                    let value: Value = try policy.value({ try decoder.value(in: line) })
                {
                    return value
                }
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(lines: lines.makeAsyncIterator(), end: end, policy: policy, decoder: decoder)
    }
}

extension JSONDecoder {
    /// Decodes a value; a decoder's error is wrapped.
    func value<Value: Decodable>(in data: Data) throws(EventStreamError) -> Value {
        do {
            return try decode(Value.self, from: data)
        } catch {
            throw .decodingFailed(data: Data(data), error: error)
        }
    }
}
