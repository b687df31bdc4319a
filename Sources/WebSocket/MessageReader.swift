// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// Makes messages of the bytes that come from a server: frames, fragments, compression, UTF-8, limits.
///
/// A value that knows no connection: bytes are put in with ``feed(_:)`` and events taken out with ``next()``, as many as are wanted.
struct MessageReader {
    enum Event: Sendable, Hashable {
        case message(WebSocketMessage)
        case ping(Data)
        case pong(Data)
        /// The last event.
        case close(WebSocketClosure)
    }

    struct Limits: Sendable {
        var frame = 16 << 20
        var message = 16 << 20
    }

    /// A message of which not all has come.
    private struct Partial {
        let isText: Bool
        let isCompressed: Bool
        var bytes = Data()
        var validator = UTF8Validator()
    }

    private let limits: Limits
    private let inflater: MessageInflater?
    private var input = Data()
    private var position = 0
    private var partial: Partial?
    /// The data frame of which not all has come, and how much of it is missing.
    private var frame: FrameHeader?
    private var missing = 0

    init(limits: Limits, inflater: MessageInflater? = nil) {
        self.limits = limits
        self.inflater = inflater
    }

    /// Takes bytes behind those before.
    mutating func feed(_ bytes: Data) {
        if position == input.count {
            input = bytes
        } else {
            input = input.dropFirst(position) + bytes
        }
        position = 0
    }

    /// The next event; `nil` when more bytes are needed. To be asked no more after an error.
    mutating func next() throws(FrameViolation) -> Event? {
        while true {
            if let frame, missing > 0 || frame.length == 0 {
                guard let event = try readPayload(of: frame) else { return nil }
                if let message = event.message { return .message(message) }
                continue
            }
            guard let (header, payload) = try readHeader() else { return nil }
            if let payload { return try control(header, payload) }
        }
    }

    // MARK: Frames

    /// Reads a frame's header, and of a control frame all; a data frame is entered as the one whose payload comes.
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
            guard partial != nil else { throw .protocolError("A fragment continues nothing") }
            guard !header.isCompressed else { throw .protocolError("A later fragment has a reserved bit set") }
        } else {
            guard partial == nil else { throw .protocolError("A message begins before the one before it has ended") }
            guard !header.isCompressed || inflater != nil else { throw .protocolError("A reserved bit is set") }
            partial = Partial(isText: header.opcode == .text, isCompressed: header.isCompressed)
        }
        // What is not compressed has its size at once.
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

    private func tooLarge(_ what: String, _ limit: Int) -> FrameViolation {
        FrameViolation(code: .messageTooBig, message: "\(what) is larger than \(limit) bytes")
    }

    // MARK: Payloads

    /// A frame's end, with the message if it is the last one's.
    private struct FrameEnd {
        let message: WebSocketMessage?
    }

    /// Takes what there is of a data frame's payload; `nil` when more has to come.
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
            // The whole message at once needs no copy.
            if partial.bytes.isEmpty { partial.bytes = piece } else { partial.bytes.append(piece) }
            return
        }
        try piece.readBytes { bytes throws(FrameViolation) in try inflate(bytes, with: inflater, into: &partial) }
    }

    private func inflate(
        _ bytes: UnsafeRawBufferPointer, with inflater: MessageInflater, into partial: inout Partial
    ) throws(FrameViolation) {
        var violation: FrameViolation?
        let end = limits.message
        do {
            _ = try inflater.decompress(bytes) { piece in
                // In the order of the bytes: what is wrong first counts, however they come.
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

    private static let notUTF8 = FrameViolation(code: .invalidPayload, message: "A text is not UTF-8")
}

extension RawDeflateError {
    /// What a message that can't be decompressed means for the connection.
    fileprivate var violation: FrameViolation {
        switch self {
        case .outOfMemory: FrameViolation(code: .internalError, message: "No memory to decompress a message")
        case .corrupt(let reason): FrameViolation(code: .invalidPayload, message: "A compressed message is corrupt: \(reason)")
        }
    }
}

extension Data {
    /// `withUnsafeBytes` that keeps the type of the error.
    func readBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        let result = withUnsafeBytes { bytes in
            Result { () throws(E) in try body(bytes) }
        }
        return try result.get()
    }

    /// The bytes by themselves, beginning at 0, without what they were cut out of.
    fileprivate var detached: Data { Data(self) }
}
