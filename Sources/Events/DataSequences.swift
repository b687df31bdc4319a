// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension AsyncSequence where Element == Data {
    /// The events in these bytes (WHATWG HTML, section 9.2.5), as they come.
    ///
    /// - Parameter maximumEventSize: the most bytes of an event's data, and of a line; 16 MiB by default.
    public func serverSentEvents(maximumEventSize: Int = 16 << 20) -> ServerSentEvents<Self> {
        ServerSentEvents(bytes: self, maximumEventSize: maximumEventSize)
    }

    /// The lines in these bytes, as they come, without their line breaks (LF or CR LF); what stands behind the last break is one too.
    ///
    /// - Parameter maximumSize: the longest line, in bytes; 16 MiB by default.
    public func dataLines(maximumSize: Int = 16 << 20) -> DataLines<Self> {
        DataLines(bytes: self, maximumSize: maximumSize)
    }

    /// The values in these bytes, a line of JSON each, as they come; empty lines are passed over.
    ///
    /// ```swift
    /// for try await entry in manager.streamRequest(url).validate().bodyStream().jsonLines(of: Entry.self) { … }
    /// ```
    ///
    /// - Parameters:
    ///   - type: what each line is.
    ///   - decoder: must not be changed any more.
    ///   - maximumSize: the longest line, in bytes; 16 MiB by default.
    public func jsonLines<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder(), maximumSize: Int = 16 << 20
    ) -> JSONLines<Self, Value> {
        JSONLines(lines: dataLines(maximumSize: maximumSize), decoder: decoder)
    }
}

/// The events in a sequence of bytes. Throws ``EventStreamError/tooLarge(limit:)``, and what the bytes throw.
public struct ServerSentEvents<Bytes: AsyncSequence>: AsyncSequence where Bytes.Element == Data {
    /// An event.
    public typealias Element = ServerSentEvent

    let bytes: Bytes
    let maximumEventSize: Int

    /// Reads the events.
    public struct Iterator: AsyncIteratorProtocol {
        var bytes: Bytes.AsyncIterator
        var parser: ServerSentEventParser

        /// The next event; `nil` at the end.
        public mutating func next() async throws -> ServerSentEvent? {
            while true {
                if let event = try parser.next() { return event }
                guard let piece = try await bytes.next() else { return nil }
                parser.feed(piece)
            }
        }
    }

    /// An iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), parser: ServerSentEventParser(maximumEventSize: maximumEventSize))
    }
}

/// The lines in a sequence of bytes. Throws ``EventStreamError/tooLarge(limit:)``, and what the bytes throw.
public struct DataLines<Bytes: AsyncSequence>: AsyncSequence where Bytes.Element == Data {
    /// A line.
    public typealias Element = Data

    let bytes: Bytes
    let maximumSize: Int

    /// Reads the lines.
    public struct Iterator: AsyncIteratorProtocol {
        var bytes: Bytes.AsyncIterator
        var lines: LineSplitter

        /// The next line; `nil` at the end.
        public mutating func next() async throws -> Data? {
            while true {
                // By itself: a slice of what came would begin at another index than 0.
                if let line = try lines.next() { return Data(line) }
                guard let piece = try await bytes.next() else { return lines.rest().map { Data($0) } }
                lines.feed(piece)
            }
        }
    }

    /// An iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(bytes: bytes.makeAsyncIterator(), lines: LineSplitter(.lineFeed, limit: maximumSize))
    }
}

/// The values in lines of JSON.
///
/// A line that is none throws ``EventStreamError/decodingFailed(data:error:)``; the iterator can then be asked for the next.
public struct JSONLines<Bytes: AsyncSequence, Value: Decodable & Sendable>: AsyncSequence where Bytes.Element == Data {
    /// A value.
    public typealias Element = Value

    let lines: DataLines<Bytes>
    let decoder: JSONDecoder

    /// Reads the values.
    public struct Iterator: AsyncIteratorProtocol {
        var lines: DataLines<Bytes>.Iterator
        let decoder: JSONDecoder

        /// The next value; `nil` at the end.
        public mutating func next() async throws -> Value? {
            while let line = try await lines.next() {
                if line.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) { continue }
                return try decoder.value(in: line)
            }
            return nil
        }
    }

    /// An iterator.
    public func makeAsyncIterator() -> Iterator {
        Iterator(lines: lines.makeAsyncIterator(), decoder: decoder)
    }
}

extension JSONDecoder {
    /// The value, or why there is none.
    func value<Value: Decodable>(in data: Data) throws(EventStreamError) -> Value {
        do {
            return try decode(Value.self, from: data)
        } catch {
            throw .decodingFailed(data: Data(data), error: error)
        }
    }
}
