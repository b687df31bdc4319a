// SPDX-License-Identifier: Apache-2.0

/// A request that violates HTTP/1.1; the response is 400.
struct MalformedRequest: Error {
    let reason: String
}

/// A request's body as it is received: counted and hashed, and kept on demand.
package struct ReceivedBody {
    package let keeps: Bool
    package private(set) var data = Data()
    package private(set) var length: Int64 = 0
    package private(set) var checksum = CRC32()

    package init(keeps: Bool) {
        self.keeps = keeps
    }

    package mutating func take(_ bytes: UnsafeRawBufferPointer) {
        length += Int64(bytes.count)
        checksum.update(bytes)
        if keeps { data.append(contentsOf: bytes) }
    }
}

/// Reads the requests of one connection in order, on the connection's thread.
package final class RequestReader {
    private static let longestLine = 1 << 20

    private let socket: ConnectedSocket
    // 16 KiB until a longer line arrives, because hundreds of connections may be idle. Unread bytes are at `start ..< end`.
    private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16 << 10, alignment: 16)
    private var start = 0
    private var end = 0

    package init(socket: ConnectedSocket) {
        self.socket = socket
    }

    deinit {
        buffer.deallocate()
    }

    /// Reads up to the empty line; nil if the client closed the connection instead of sending a request.
    package func readHead() throws -> RequestHead? {
        guard var line = try readLine() else { return nil }
        if line.isEmpty {  // RFC 9112, section 2.2: one empty line before a request is ignored
            guard let next = try readLine() else { return nil }
            line = next
        }
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw MalformedRequest(reason: "request line: \(line)")
        }
        return RequestHead(
            method: String(parts[0]), target: String(parts[1]), minorVersion: parts[2] == "HTTP/1.1" ? 1 : 0,
            headers: try readFields())
    }

    /// Reads a body of a known length.
    package func readBody(length: Int64, into body: inout ReceivedBody) throws {
        var left = length
        takeBuffered(&left, into: &body)
        guard left > 0 else { return }
        let size = Int(min(left, 256 << 10))
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { piece.deallocate() }
        while left > 0 {
            let room = UnsafeMutableRawBufferPointer(rebasing: piece[..<Int(min(left, Int64(size)))])
            let count = try socket.receive(into: room)
            guard count > 0 else { throw SocketError("recv", code: ECONNRESET) }
            body.take(UnsafeRawBufferPointer(rebasing: room[..<count]))
            left -= Int64(count)
        }
    }

    /// Reads a chunked body, and returns its trailers.
    package func readChunkedBody(into body: inout ReceivedBody) throws -> [ServerField] {
        while true {
            let line = try readLine() ?? ""
            let digits = line.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
            guard let size = Int64(digits, radix: 16), size >= 0 else { throw MalformedRequest(reason: "chunk size: \(line)") }
            guard size > 0 else { break }
            try readBody(length: size, into: &body)
            guard try readLine() == "" else { throw MalformedRequest(reason: "no line break after a chunk") }
        }
        return try readFields()
    }

    private func readFields() throws -> [ServerField] {
        var fields: [ServerField] = []
        while true {
            guard let line = try readLine() else { throw MalformedRequest(reason: "end of stream within the fields") }
            if line.isEmpty { return fields }
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw MalformedRequest(reason: "field: \(line)") }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            let end = value.lastIndex { $0 != " " && $0 != "\t" }.map { value.index(after: $0) } ?? value.startIndex
            fields.append(ServerField(String(line[..<colon]), String(value[..<end])))
        }
    }

    /// Returns the next line without its line break; nil at the end of the stream. An incomplete last line is discarded.
    private func readLine() throws -> String? {
        var searched = 0
        while true {
            if let length = lineLength(after: searched) {
                defer { start += length + 1 }
                return text(length)
            }
            searched = end - start
            guard try receiveMore() else { return nil }
        }
    }

    private func lineLength(after searched: Int) -> Int? {
        guard let base = buffer.baseAddress, end > start + searched else { return nil }
        let line = base + start
        guard let feed = memchr(line + searched, 0x0A, end - start - searched) else { return nil }
        return UnsafeRawPointer(feed) - UnsafeRawPointer(line)
    }

    private func text(_ length: Int) -> String {
        let hasReturn = length > 0 && buffer[start + length - 1] == 0x0D
        return String(decoding: buffer[start..<start + length - (hasReturn ? 1 : 0)], as: UTF8.self)
    }

    /// Receives more bytes after the unread ones; false at the end of the stream.
    private func receiveMore() throws -> Bool {
        if start == end { (start, end) = (0, 0) }
        if end == buffer.count { try makeRoom() }
        let count = try socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[end...]))
        end += count
        return count > 0
    }

    private func makeRoom() throws {
        let unread = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
        guard unread.count < Self.longestLine else { throw MalformedRequest(reason: "a line over 1 MiB") }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(unread.count * 2, 16 << 10), alignment: 16)
        larger.copyMemory(from: unread)
        (start, end) = (0, unread.count)
        buffer.deallocate()
        buffer = larger
    }

    private func takeBuffered(_ left: inout Int64, into body: inout ReceivedBody) {
        let count = Int(min(Int64(end - start), left))
        body.take(UnsafeRawBufferPointer(rebasing: buffer[start..<start + count]))
        start += count
        left -= Int64(count)
    }
}
