// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

@testable import CurlewCaching
@testable import CurlewCore
@testable import CurlewEvents
@testable import CurlewJSON
@testable import CurlewOperations
@testable import CurlewServices
@testable import CurlewWebSocket

// Parsers of the upper layers: WebSockets, event streams, JSON, links, caches and archives on disk.

extension FuzzTarget {
    static let layers = [
        FuzzTarget(name: "websocket-frames", check: webSocketFrames), FuzzTarget(name: "websocket-handshake", check: webSocketHandshake),
        FuzzTarget(name: "event-stream", check: eventStream), FuzzTarget(name: "json", check: json),
        FuzzTarget(name: "cache-entry", check: cacheEntry), FuzzTarget(name: "operation-archive", check: operationArchive),
        FuzzTarget(name: "image-header", check: imageHeader), FuzzTarget(name: "web-link", check: webLink),
    ]

    /// Returns the input's first byte as `choice`, and the rest whole and in pieces of a size that this byte determines.
    private static func pieces(_ input: [UInt8]) -> (choice: Int, whole: Data, pieces: [Data]) {
        let choice = Int(input.first ?? 0)
        let (rest, size) = (input.dropFirst(), choice / 8 % 8 + 1)
        let starts = stride(from: rest.startIndex, to: rest.endIndex, by: size)
        return (choice, Data(rest), starts.map { Data(rest[$0..<min($0 + size, rest.endIndex)]) })
    }

    // MARK: Links

    private static func webLink(_ input: [UInt8]) throws {
        for link in WebLink.parse([String(decoding: input, as: UTF8.self)]) {
            try require(!link.target.unicodeScalars.contains(">"), "a target with an end: \(link.target.debugDescription)")
            for parameter in link.parameters {
                let isName = !parameter.name.isEmpty && !parameter.name.unicodeScalars.contains { " \t=;,".unicodeScalars.contains($0) }
                try require(isName, "a name with separators: \(parameter.name.debugDescription)")
            }
            try require(WebLink.parse([link.fieldValue]) == [link], "written again as \(link.fieldValue.debugDescription), another link")
        }
    }

    // MARK: WebSockets

    private static func webSocketFrames(_ input: [UInt8]) throws {
        let (choice, whole, pieces) = pieces(input)
        let once = try events(of: [whole], compressed: choice % 2 == 1)
        let bitwise = try events(of: pieces, compressed: choice % 2 == 1)
        try require(once == bitwise, "in pieces \(bitwise), in one \(once)")
    }

    /// Returns the events as text, followed by the error that ended them.
    private static func events(of pieces: [Data], compressed: Bool) throws -> [String] {
        let limits = MessageReader.Limits(frame: 2048, message: 4096)
        var reader = MessageReader(limits: limits, inflater: compressed ? MessageInflater(DeflateAgreement()) : nil)
        var events: [String] = []
        for piece in pieces {
            reader.feed(piece)
            do {
                while let event = try reader.next() {
                    events.append("\(event)")
                    switch event {
                    case .message(.binary(let data)): try require(data.count <= limits.message, "\(data.count) bytes")
                    case .message(.text(let text)): try require(text.utf8.count <= limits.message, "\(text.utf8.count) bytes of text")
                    case .ping(let data), .pong(let data): try require(data.count <= 125, "a control frame of \(data.count)")
                    case .fragment: break
                    case .close: return events
                    }
                }
            } catch let violation as FrameViolation {
                return events + ["\(violation)"]
            }
        }
        return events
    }

    private static func webSocketHandshake(_ input: [UInt8]) throws {
        let (_, whole, pieces) = pieces(input)
        let request = try HandshakeRequest(
            URLRequest(url: URL(string: "ws://localhost/chat") ?? URL(fileURLWithPath: "/")), subprotocols: ["chat"], defaults: [:],
            compression: WebSocketCompression(), key: "dGhlIHNhbXBsZSBub25jZQ==")
        let once = handshake(of: [whole], request)
        try require(handshake(of: pieces, request) == once, "in pieces other than in one: \(once ?? "nothing")")
    }

    private static func handshake(of pieces: [Data], _ request: HandshakeRequest) -> String? {
        var reader = UpgradeReader()
        do {
            for piece in pieces {
                guard let result = try reader.feed(piece) else { continue }
                guard case .switched(let head, _) = result else { return "refused" }
                let (handshake, agreement) = try WebSocketHandshake.validate(head, for: request)
                return "switched \(handshake.subprotocol ?? "") \(String(describing: agreement))"
            }
            return reader.end().map { _ in "refused" }
        } catch {
            return "\(error)"
        }
    }

    // MARK: Text

    private static func eventStream(_ input: [UInt8]) throws {
        let (_, whole, pieces) = pieces(input)
        let once = try serverEvents(of: [whole])
        let bitwise = try serverEvents(of: pieces)
        try require(once == bitwise, "in pieces \(bitwise), in one \(once)")
    }

    private static func serverEvents(of pieces: [Data]) throws -> [ServerSentEvent] {
        let limit = 1024
        var parser = ServerSentEventParser(maximumEventSize: limit)
        var events: [ServerSentEvent] = []
        for piece in pieces {
            parser.feed(piece)
            do {
                while let event = try parser.next() { events.append(event) }
            } catch {
                break
            }
        }
        for event in events {
            try require(!event.type.isEmpty && !hasControls(event.type.filter { $0 != "\0" }), "type \(event.type.debugDescription)")
            try require(!hasControls(event.id), "id \(event.id.debugDescription)")
            // Invalid UTF-8 becomes U+FFFD, of three bytes.
            try require(event.data.utf8.count <= 3 * limit, "\(event.data.utf8.count) bytes")
        }
        try require(parser.retry.map { $0 >= .zero } ?? true, "negative retry")
        return events
    }

    /// Arbitrary JSON, so that every branch is covered.
    private enum AnyJSON: Decodable, Equatable {
        case null, bool(Bool), number(Double), text(String)
        case list([AnyJSON]), object([String: AnyJSON])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let bool = try? value.decode(Bool.self) {
                self = .bool(bool)
            } else if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let list = try? value.decode([AnyJSON].self) {
                self = .list(list)
            } else {
                self = .object(try value.decode([String: AnyJSON].self))
            }
        }
    }

    private static func json(_ input: [UInt8]) throws {
        // Decoders that try several types in turn decode each nested level more than once.
        var (depth, deepest) = (0, 0)
        for byte in input {
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") { depth += 1 }
            if byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") { depth -= 1 }
            deepest = max(deepest, depth)
        }
        if deepest < 12 {
            guard let value = try? FastJSONDecoder().decode(AnyJSON.self, from: Data(input)) else { return }
            // In UTF-16 and UTF-32 a space has more than one byte, and a UTF-8 byte order mark counts only at the beginning.
            guard !input.contains(0), !(0xFE...0xFF).contains(input.first ?? 0), !input.starts(with: [0xEF, 0xBB, 0xBF]) else { return }
            let again = try? FastJSONDecoder().decode(AnyJSON.self, from: Data([32] + input + [10]))
            try require(again == value, "another value between spaces")
        } else {
            _ = try? FastJSONDecoder().decode([String].self, from: Data(input))
        }
    }

    // MARK: Disk

    private static func cacheEntry(_ input: [UInt8]) throws {
        let bytes = Data(input)
        let rest = bytes.dropFirst(EntryHead.size)
        for size in [Int64(input.count), .max, 0] {
            guard let head = EntryHead(bytes.prefix(EntryHead.size), fileSize: size) else { continue }
            try require(head.keyLength >= 0 && head.metadataLength >= 0 && head.bodyLength >= 0, "negative length")
            try require(head.fileSize == size, "\(head.fileSize) of \(size) bytes")
            try require(head.bytes == bytes.prefix(EntryHead.size), "changes when read and written")
            _ = head.agrees(with: Data(rest.prefix(head.keyLength)), Data(rest.dropFirst(head.keyLength).prefix(head.metadataLength)))
        }
    }

    private static func operationArchive(_ input: [UInt8]) throws {
        guard let archive = try? JSONDecoder().decode(OperationArchive.self, from: Data(input)) else { return }
        guard let operation = try? URLConnectionOperation.operation(from: archive) else { return }
        _ = (operation.request, operation.response, operation.error, operation.isFinished)
    }

    private static func imageHeader(_ input: [UInt8]) throws {
        guard let header = ImageHeader(Data(input)) else { return }
        try require(header.width > 0 && header.height > 0, "\(header.width) × \(header.height)")
    }
}
