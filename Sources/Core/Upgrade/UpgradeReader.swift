// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Parses the response to a request for another protocol (RFC 9110, section 7.8) from the received bytes, over HTTP/1.1.
///
/// A value type without a connection, so that it can be fuzzed (`Tests/FuzzTests`).
package struct UpgradeReader: Sendable {
    /// The maximum size of the head, and of a refusal's body, in bytes.
    package static let limit = 64 << 10

    package enum Result: Sendable {
        /// Status 101; `rest` is what was received of the new protocol.
        case switched(ResponseHead, rest: Data)
        /// Another final status, with the beginning of its body.
        case refused(ResponseHead, body: Data)

        package var head: ResponseHead {
            switch self {
            case .switched(let head, _), .refused(let head, _): head
            }
        }
    }

    /// The bytes are no response of HTTP/1.1, or have a head that is too long, or too many interim responses.
    package struct Malformed: Error {}

    /// How the body of a refusal ends.
    private enum Framing: Sendable {
        case length(Int)
        case chunked
        case connection
    }

    /// The most interim responses before the final one.
    private static let mostInterimResponses = 32

    /// The longest line with the size of a chunk, in bytes.
    private static let longestChunkLine = 1024

    private let isToHead: Bool
    /// What was received and is not parsed yet.
    private var bytes = Data()
    private var refusal: (head: ResponseHead, framing: Framing)?
    /// The content of a refusal's chunks.
    private var content = Data()
    /// The bytes that are left of a chunk.
    private var chunkRest = 0
    private var interimCount = 0
    /// The bytes of the heads so far, interim ones included.
    package private(set) var headBytes = 0
    /// The bytes of a refusal's body so far.
    package private(set) var bodyBytes = 0
    /// The head of a refusal, perhaps before its body.
    var refusedHead: ResponseHead? { refusal?.head }

    /// - Parameter isToHead: whether the request's method is HEAD, whose responses have no body.
    package init(toHead isToHead: Bool = false) { self.isToHead = isToHead }

    /// Appends received bytes and returns the result; `nil` if more bytes are needed.
    package mutating func feed(_ piece: Data) throws(Malformed) -> Result? {
        bytes.append(piece)
        let isInBody = refusal != nil
        while refusal == nil {
            guard let head = try takeHead() else { return nil }
            if head.statusCode == 101 { return .switched(head, rest: bytes) }
            guard head.statusCode < 200 else {
                refusal = (head, framing(of: head))
                break
            }
            // Other interim responses are skipped (RFC 9110, section 15.2).
            interimCount += 1
            guard interimCount <= Self.mostInterimResponses else { throw Malformed() }
        }
        guard let (head, framing) = refusal else { return nil }
        bodyBytes += isInBody ? piece.count : bytes.count
        switch framing {
        case .length(let length):
            let wanted = min(length, Self.limit)
            return bytes.count < wanted ? nil : .refused(head, body: bytes.prefix(wanted))
        case .chunked: return takeChunks() ? .refused(head, body: content) : nil
        case .connection: return bytes.count < Self.limit ? nil : .refused(head, body: bytes.prefix(Self.limit))
        }
    }

    /// Returns the result when the connection has ended: a refusal with what was received of its body; `nil` for none.
    package func end() -> Result? {
        refusal.map { head, framing in
            if case .chunked = framing { .refused(head, body: content) } else { .refused(head, body: bytes.prefix(Self.limit)) }
        }
    }

    /// Returns how a refusal's body ends (RFC 9112, section 6.3). One without a length is empty unless the server says that it closes the
    /// connection, for which the request would wait otherwise.
    private func framing(of head: ResponseHead) -> Framing {
        if isToHead || head.statusCode == 204 || head.statusCode == 304 { return .length(0) }
        if let codings = head.value(for: "Transfer-Encoding") { return codings.equalsIgnoringASCIICase("chunked") ? .chunked : .connection }
        if let length = head.value(for: "Content-Length") { return .length(max(0, Int(length) ?? 0)) }
        return head.headers.members(of: "Connection").contains { $0.equalsIgnoringASCIICase("close") } ? .connection : .length(0)
    }

    /// Moves the content of chunks (RFC 9112, section 7.1) from the bytes to ``content``. Returns whether the body has ended: by its last
    /// chunk, by what is no chunk, or by the limit.
    private mutating func takeChunks() -> Bool {
        var rest = bytes[...]
        defer { bytes = Data(rest) }
        while true {
            let part = rest.prefix(min(chunkRest, Self.limit - content.count))
            content.append(part)
            chunkRest -= part.count
            rest = rest.dropFirst(part.count)
            guard content.count < Self.limit, bodyBytes < 4 * Self.limit else { return true }
            guard chunkRest == 0 else { return false }
            guard let end = rest.firstRange(of: Data("\r\n".utf8)) else { return rest.count > Self.longestChunkLine }
            let line = rest[..<end.lowerBound]
            rest = rest[end.upperBound...]
            // After the content of a chunk.
            if line.isEmpty, !content.isEmpty { continue }
            let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
            guard line.count <= Self.longestChunkLine, digits.first.map({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) ?? false,
                let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size > 0
            else { return true }
            chunkRest = size
        }
    }

    /// Removes the next head from the bytes and returns it; `nil` if more bytes are needed.
    private mutating func takeHead() throws(Malformed) -> ResponseHead? {
        guard looksLikeHTTP else { throw Malformed() }
        let blankLine = bytes.firstRange(of: Data("\r\n\r\n".utf8))
        guard let blankLine, blankLine.upperBound - bytes.startIndex <= Self.limit else {
            guard bytes.count <= Self.limit else { throw Malformed() }
            return nil
        }
        guard let head = ResponseHead(bytes: Array(bytes[..<(blankLine.lowerBound + 2)])) else { throw Malformed() }
        headBytes += blankLine.upperBound - bytes.startIndex
        bytes = Data(bytes[blankLine.upperBound...])
        return head
    }

    /// Whether the first bytes start an HTTP response; checked early so that a peer with another protocol fails at once, not on the
    /// timeout.
    private var looksLikeHTTP: Bool { zip(bytes, "HTTP/1.".utf8).allSatisfy { $0 == $1 } }
}
