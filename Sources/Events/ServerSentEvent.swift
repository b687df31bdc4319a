// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// A server-sent event (WHATWG HTML, section 9.2).
public struct ServerSentEvent: Sendable, Hashable {
    /// The event's type; `message` if the server sets none.
    public let type: String
    /// The data; several `data` lines are joined with line feeds.
    public let data: String
    /// The last ID that the server has set, with this event or an earlier one; empty for none.
    public let id: String

    /// Creates an event.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// Parses a stream of events, which arrives in pieces (WHATWG HTML, sections 9.2.5 and 9.2.6).
///
/// A value without I/O, so that it can be fuzzed (`Tests/FuzzTests`): pieces go in with ``feed(_:)``, and events come out with ``next()``.
/// An event without a blank line after it at the end of the stream is discarded.
public struct ServerSentEventParser: Sendable {
    private let limit: Int
    private var lines: LineSplitter
    private var isAtStart = true
    private var type = ""
    private var data: Data?
    private var idBuffer: String

    /// The last ID that came with an event, which a reconnection sends as `Last-Event-ID`.
    public private(set) var lastEventID: String
    /// The delay before reconnecting that the server has set; `nil` if it has set none.
    public private(set) var retry: Duration?

    /// Creates a parser for a stream.
    ///
    /// - Parameters:
    ///   - lastEventID: the last ID of the previous connection.
    ///   - maximumEventSize: the maximum size of an event's data, and of a line, in bytes; 16 MiB by default.
    public init(lastEventID: String = "", maximumEventSize: Int = 16 << 20) {
        limit = maximumEventSize
        lines = LineSplitter(.any, limit: maximumEventSize)
        idBuffer = lastEventID
        self.lastEventID = lastEventID
    }

    /// Creates a parser for a stream that has reconnected.
    init(lastEventID: String, maximumEventSize: Int, retry: Duration?) {
        self.init(lastEventID: lastEventID, maximumEventSize: maximumEventSize)
        self.retry = retry
    }

    /// Appends a piece of the stream.
    public mutating func feed(_ piece: Data) {
        lines.feed(piece)
    }

    /// Returns the next event; `nil` if more of the stream is needed.
    ///
    /// - Throws: ``EventStreamError/tooLarge(limit:)``.
    public mutating func next() throws(EventStreamError) -> ServerSentEvent? {
        while var line = try lines.next() {
            if isAtStart, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
            isAtStart = false
            if line.isEmpty {
                if let event = dispatch() { return event }
            } else {
                try process(line)
            }
        }
        return nil
    }

    private mutating func process(_ line: Data) throws(EventStreamError) {
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        let name = colon.map { line[..<$0] } ?? line
        var value = colon.map { line[($0 + 1)...] } ?? Data()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: name, as: UTF8.self) {
        case "data": try append(value)
        case "event": type = String(decoding: value, as: UTF8.self)
        case "id": if !value.contains(0) { idBuffer = String(decoding: value, as: UTF8.self) }
        case "retry": setRetry(value)
        default: break  // comments have an empty name
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

    private mutating func setRetry(_ value: Data) {
        guard !value.isEmpty, value.allSatisfy({ $0.isASCIIDigit }) else { return }
        // A value that overflows `Int` is clamped to about 68 years.
        retry = Int(String(decoding: value, as: UTF8.self)).map { .milliseconds($0) } ?? .seconds(Int32.max)
    }

    /// Handles a blank line, which completes an event. Without data there is no event, but its ID counts.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = idBuffer
        defer {
            type = ""
            data = nil
        }
        // `data` alone, without a value, makes an event with empty data: only without any `data` line is there no event.
        guard let data else { return nil }
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: String(decoding: data, as: UTF8.self), id: lastEventID)
    }
}

/// Why a stream of events or lines can't be read.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum EventStreamError: Error, Sendable {
    /// An event or a line exceeds the maximum size, in bytes.
    case tooLarge(limit: Int)
    /// The server's response is not a stream of events, by its status or content type, and the stream does not reconnect.
    case rejected(EventStreamRejection)
    /// A line or an event's data could not be decoded; the cause is the decoder's error. Iteration may continue.
    case decodingFailed(data: Data, error: any Error)
}

// MARK: - Descriptions

extension EventStreamError: CustomStringConvertible, LocalizedError, RedactedCases {
    /// The name of the case.
    package var caseName: String? {
        switch self {
        case .tooLarge: "tooLarge"
        case .rejected: "rejected"
        case .decodingFailed: "decodingFailed"
        }
    }

    /// The error in one sentence; control characters are escaped.
    public var description: String {
        switch self {
        case .tooLarge(let limit): "An event or a line exceeds the maximum size of \(limit) bytes."
        case .rejected(let rejection): "\(rejection)"
        case .decodingFailed(let data, let error): Redaction.escaped("Decoding \(data.count) bytes of a line or an event failed: \(error)")
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}
