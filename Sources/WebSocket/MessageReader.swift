// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Parses received bytes into messages: frames, fragments, compression, UTF-8, limits.
///
/// A value type without a connection, so that it can be fuzzed (`Tests/FuzzTests`): ``feed(_:)`` takes bytes, ``next()`` returns one event
/// at a time.
struct MessageReader {
    enum Event: Sendable, Hashable {
        case message(WebSocketMessage)
        /// A frame that does not complete a message.
        case fragment
        case ping(Data)
        case pong(Data)
        /// A close frame: the last event.
        case close(WebSocketClosure)
    }

    struct Limits: Sendable {
        var frame = 16 << 20
        var message = 16 << 20
    }

    /// A message that is not completely received.
    private struct Partial {
        let isText: Bool
        let isCompressed: Bool
        var bytes = Data()
        var validator = UTF8Validator()
        /// The number of frames without a payload.
        var emptyFrames = 0
        /// The size of the payloads, as received.
        var receivedBytes = 0
    }

    /// The most frames without a payload that a message may have: some writers end a message with one, or flush nothing now and then.
    private static let maximumEmptyFrames = 1_000
    /// The most compressed bytes of a message before its contents count, and how often it may be larger than these. A writer that flushes
    /// each byte sends seven for it; blocks that carry nothing would otherwise keep the reader busy without end.
    private static let allowedOverhead = (bytes: 64 << 10, factor: 16)

    private let limits: Limits
    private let inflater: MessageInflater?
    private var input = Data()
    private var position = 0
    private var partial: Partial?
    /// The data frame that is being received, and the number of its bytes still missing.
    private var frame: FrameHeader?
    private var missing = 0

    init(limits: Limits, inflater: MessageInflater? = nil) {
        self.limits = limits
        self.inflater = inflater
    }

    /// Appends received bytes.
    mutating func feed(_ bytes: Data) {
        if position == input.count {
            input = bytes
        } else {
            input = input.dropFirst(position) + bytes
        }
        position = 0
    }

    /// Returns the next event; `nil` if more bytes are needed. Must not be called after it has thrown.
    mutating func next() throws(FrameViolation) -> Event? {
        while true {
            if let frame, missing > 0 || frame.length == 0 {
                guard let end = try readPayload(of: frame) else { return nil }
                return end.message.map { .message($0) } ?? .fragment
            }
            guard let (header, payload) = try readHeader() else { return nil }
            if let payload { return try control(header, payload) }
        }
    }

    // MARK: Frames

    /// Parses a frame's header. A control frame is returned with its payload; a data frame becomes the current one, its payload is read
    /// later.
    private mutating func readHeader() throws(FrameViolation) -> (FrameHeader, Data?)? {
        let rest = input.dropFirst(position)
        let read = try rest.prefix(FrameHeader.largestSize).readBytes { bytes throws(FrameViolation) in try FrameHeader.read(bytes) }
        guard let (header, size) = read else { return nil }
        if header.opcode.isControl {
            guard rest.count >= size + header.length else { return nil }
            position += size + header.length
            return (header, Data(rest.dropFirst(size).prefix(header.length)))
        }
        try begin(header)
        position += size
        return (header, nil)
    }

    private mutating func begin(_ header: FrameHeader) throws(FrameViolation) {
        guard header.length <= limits.frame else { throw tooLarge("A frame", limits.frame) }
        if header.opcode == .continuation {
            guard partial != nil else { throw .protocolError("A continuation frame does not continue a message") }
            guard !header.isCompressed else { throw .protocolError("A continuation frame has a reserved bit set") }
        } else {
            guard partial == nil else { throw .protocolError("A message starts before the previous one is complete") }
            guard !header.isCompressed || inflater != nil else { throw .protocolError("A reserved bit is set") }
            partial = Partial(isText: header.opcode == .text, isCompressed: header.isCompressed)
        }
        if header.length == 0 {
            partial?.emptyFrames += 1
            guard partial?.emptyFrames ?? 0 <= Self.maximumEmptyFrames else {
                throw carriesNothing("A message has more than \(Self.maximumEmptyFrames) frames without a payload")
            }
        }
        // An uncompressed message's size is known from its header, so the limit is enforced before the payload arrives.
        if let partial, !partial.isCompressed, header.length > limits.message - partial.bytes.count {
            throw tooLarge("A message", limits.message)
        }
        frame = header
        missing = header.length
    }

    private func control(_ header: FrameHeader, _ payload: Data) throws(FrameViolation) -> Event {
        switch header.opcode {
        case .ping: .ping(payload)
        case .pong: .pong(payload)
        default: .close(try payload.readBytes { bytes throws(FrameViolation) in try CloseFrame.read(bytes) })
        }
    }

    private func carriesNothing(_ message: String) -> FrameViolation { FrameViolation(code: .policyViolation, message: message) }

    private func tooLarge(_ what: String, _ limit: Int) -> FrameViolation {
        FrameViolation(code: .messageTooBig, message: "\(what) exceeds the limit of \(limit) bytes")
    }

    // MARK: Payloads

    /// The end of a frame, with the message if the frame was its last.
    private struct FrameEnd {
        let message: WebSocketMessage?
    }

    /// Consumes the available payload of a data frame; returns `nil` if more bytes are needed.
    private mutating func readPayload(of frame: FrameHeader) throws(FrameViolation) -> FrameEnd? {
        let piece = input.dropFirst(position).prefix(missing)
        guard !piece.isEmpty || frame.length == 0 else { return nil }
        position += piece.count
        missing -= piece.count
        guard var partial else { return nil }
        self.partial = nil
        try add(piece, to: &partial)
        guard missing == 0 else {
            self.partial = partial
            return nil
        }
        self.frame = nil
        guard frame.isFinal else {
            self.partial = partial
            return FrameEnd(message: nil)
        }
        return FrameEnd(message: try finish(partial))
    }

    private func add(_ piece: Data, to partial: inout Partial) throws(FrameViolation) {
        guard partial.isCompressed, let inflater else {
            guard !partial.isText || piece.readBytes({ partial.validator.consume($0) }) else { throw Self.notUTF8 }
            // A message that arrives in one piece is not copied.
            if partial.bytes.isEmpty { partial.bytes = piece } else { partial.bytes.append(piece) }
            return
        }
        try piece.readBytes { bytes throws(FrameViolation) in try inflate(bytes, with: inflater, into: &partial) }
        partial.receivedBytes += piece.count
        let (bytes, factor) = Self.allowedOverhead
        guard partial.receivedBytes <= bytes || (partial.receivedBytes - bytes) / factor <= partial.bytes.count else {
            throw carriesNothing("A compressed message of \(partial.receivedBytes) bytes so far contains \(partial.bytes.count)")
        }
    }

    private func inflate(
        _ bytes: UnsafeRawBufferPointer, with inflater: MessageInflater, into partial: inout Partial
    ) throws(FrameViolation) {
        var violation: FrameViolation?
        let end = limits.message
        do {
            _ = try inflater.decompress(bytes) { piece in
                // Checks run in byte order, so that the first error is reported regardless of how the bytes are split.
                let fitting = UnsafeRawBufferPointer(rebasing: piece.prefix(max(end - partial.bytes.count, 0)))
                if partial.isText, !partial.validator.consume(fitting) {
                    violation = Self.notUTF8
                } else if fitting.count < piece.count {
                    violation = tooLarge("A message", end)
                } else {
                    partial.bytes.append(contentsOf: piece)
                }
                return violation == nil
            }
        } catch {
            throw error.violation
        }
        if let violation { throw violation }
    }

    private func finish(_ partial: Partial) throws(FrameViolation) -> WebSocketMessage {
        var partial = partial
        if partial.isCompressed, let inflater {
            try MessageInflater.tail.readBytes { bytes throws(FrameViolation) in try inflate(bytes, with: inflater, into: &partial) }
            inflater.messageEnded()
        }
        guard partial.isText else { return .binary(partial.bytes.detached) }
        guard partial.validator.isComplete else { throw Self.notUTF8 }
        return .text(partial.bytes.readBytes { String(decoding: $0, as: UTF8.self) })
    }

    private static let notUTF8 = FrameViolation(code: .invalidPayload, message: "A text message is not valid UTF-8")
}

extension RawDeflateError {
    /// The violation to close the connection with.
    fileprivate var violation: FrameViolation {
        switch self {
        case .outOfMemory: FrameViolation(code: .internalError, message: "Out of memory while decompressing a message")
        case .corrupt(let reason): FrameViolation(code: .invalidPayload, message: "A compressed message is corrupt: \(reason)")
        }
    }
}

extension Data {
    /// Calls `withUnsafeBytes` and preserves the type of the error.
    func readBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        let result = withUnsafeBytes { bytes in
            Result { () throws(E) in try body(bytes) }
        }
        return try result.get()
    }

    /// A copy of the bytes with its own storage and indices from 0, so that the larger buffer is not retained.
    fileprivate var detached: Data { Data(self) }
}
