// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// An event of a server (WHATWG HTML, section 9.2).
public struct ServerSentEvent: Sendable, Hashable {
    /// What kind of event it is; `message` where the server says nothing.
    public let type: String
    /// The data; several lines of it are joined with line feeds.
    public let data: String
    /// The last ID that the server has given, with this event or with one before it; empty for none.
    public let id: String

    /// Makes an event.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// Makes events of the bytes of a stream, which come piece by piece (WHATWG HTML, sections 9.2.5 and 9.2.6).
///
/// A value that knows no connection: pieces are put in with ``feed(_:)`` and events taken out with ``next()``. An event that has no blank
/// line behind it when the stream ends is none.
public struct ServerSentEventParser: Sendable {
    private let limit: Int
    private var lines: LineSplitter
    private var isAtStart = true
    private var type = ""
    private var data: Data?
    private var idBuffer: String

    /// The last ID that came with an event; what a new connection names as `Last-Event-ID`.
    public private(set) var lastEventID: String
    /// How long to wait before connecting again, as the server wants it; `nil` as long as it says nothing.
    public private(set) var retry: Duration?

    /// Makes a parser for a stream.
    ///
    /// - Parameters:
    ///   - lastEventID: the last ID of the stream before.
    ///   - maximumEventSize: the most bytes of an event's data, and of a line; 16 MiB by default.
    public init(lastEventID: String = "", maximumEventSize: Int = 16 << 20) {
        limit = maximumEventSize
        lines = LineSplitter(.any, limit: maximumEventSize)
        idBuffer = lastEventID
        self.lastEventID = lastEventID
    }

    /// Makes a parser for a stream that goes on.
    init(lastEventID: String, maximumEventSize: Int, retry: Duration?) {
        self.init(lastEventID: lastEventID, maximumEventSize: maximumEventSize)
        self.retry = retry
    }

    /// Takes a piece of the stream.
    public mutating func feed(_ piece: Data) {
        lines.feed(piece)
    }

    /// The next event; `nil` when more of the stream is needed.
    ///
    /// - Throws: ``EventStreamError/tooLarge(limit:)``.
    public mutating func next() throws(EventStreamError) -> ServerSentEvent? {
        while var line = try lines.next() {
            if isAtStart, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
            isAtStart = false
            if line.isEmpty {
                if let event = dispatch() { return event }
            } else {
                try take(line)
            }
        }
        return nil
    }

    private mutating func take(_ line: Data) throws(EventStreamError) {
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        let name = colon.map { line[..<$0] } ?? line
        var value = colon.map { line[($0 + 1)...] } ?? Data()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "data": try append(value)
        case "event": type = String(decoding: value, as: UTF8.self)
        case "id": if !value.contains(0) { idBuffer = String(decoding: value, as: UTF8.self) }
        case "retry": takeRetry(value)
        default: break  // comments have no name
        }
    }

    private mutating func append(_ value: Data) throws(EventStreamError) {
        guard var data else { return data = Data(value) }
        guard value.count < limit - data.count else { throw .tooLarge(limit: limit) }
        self.data = nil
        data.append(UInt8(ascii: "\n"))
        data.append(value)
        self.data = data
    }

    private mutating func takeRetry(_ value: Data) {
        guard !value.isEmpty, value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return }
        // More than an Int holds is longer than anybody waits.
        retry = Int(String(decoding: value, as: UTF8.self)).map { .milliseconds($0) } ?? .seconds(Int32.max)
    }

    /// A blank line: the event is whole. Without data it is none, but its ID counts.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = idBuffer
        defer {
            type = ""
            data = nil
        }
        // "data" without a value, alone, gives an event with empty data: what is empty is the buffer without any.
        guard let data else { return nil }
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: String(decoding: data, as: UTF8.self), id: lastEventID)
    }
}

/// Why a stream of events or lines can't be read.
public enum EventStreamError: Error, Sendable {
    /// An event or a line is larger than allowed, in bytes.
    case tooLarge(limit: Int)
    /// The server's response is no stream of events, by its status or its content type, and no other connection is made.
    case refused(EventStreamRefusal)
    /// A line or an event's data could not be decoded; the cause is what the decoder threw. What follows may be read on.
    case decodingFailed(data: Data, error: any Error)
}

// MARK: - Descriptions

extension EventStreamError: CustomStringConvertible {
    /// What went wrong, in a sentence; control characters are escaped.
    public var description: String {
        switch self {
        case .tooLarge(let limit): "An event or a line is larger than \(limit) bytes."
        case .refused(let refusal): "\(refusal)"
        case .decodingFailed(let data, let error): Redaction.escaped("\(data.count) bytes of data were not decoded: \(error)")
        }
    }
}
