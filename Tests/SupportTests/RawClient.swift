// SPDX-License-Identifier: Apache-2.0

@testable import CurlewLoopback

/// A client that sends exactly the bytes given by a test, and reads the response.
final class RawClient: Sendable {
    /// A raw response, with its body decoded from the chunked coding.
    struct Response {
        var status: Int
        var headers: [ServerField]
        var body: Data

        func header(_ name: String) -> String? {
            headers.first { $0.isNamed(name) }?.value
        }
    }

    struct UnexpectedEnd: Error {
        let received: Data
    }

    private let socket: ConnectedSocket

    init(port: Int) throws {
        let descriptor = Platform.makeStreamSocket()
        guard descriptor >= 0 else { throw SocketError("socket") }
        socket = ConnectedSocket(descriptor)
        var address = Platform.loopbackAddress(port: UInt16(port))
        let connected = withGenericAddress(&address) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        guard connected == 0 else { throw SocketError("connect") }
    }

    func send(_ text: String) throws {
        try socket.send(Data(text.utf8))
    }

    func send(_ data: Data) throws {
        try socket.send(data)
    }

    func shutDownWriting() {
        socket.shutDownWriting()
    }

    func close() {
        socket.close()
    }

    /// Sends a request and reads its response.
    func exchange(
        _ target: String, method: String = "GET", headers: [String] = [], body: Data? = nil
    ) throws -> Response {
        var head = "\(method) \(target) HTTP/1.1\r\nHost: loopback\r\n" + headers.map { "\($0)\r\n" }.joined()
        if let body { head += "Content-Length: \(body.count)\r\n" }
        try send(head + "\r\n")
        if let body { try send(body) }
        return try readResponse(hasBody: method != "HEAD")
    }

    /// Reads exactly one response, with a Content-Length or chunked.
    func readResponse(hasBody: Bool = true) throws -> Response {
        let lines = try read { $0.suffix(4) == Data("\r\n\r\n".utf8) }.text.split(separator: "\r\n")
        var response = Response(status: Int(lines[0].split(separator: " ")[1]) ?? 0, headers: [], body: Data())
        response.headers = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return ServerField(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
        }
        guard hasBody, response.status >= 200 else { return response }
        if response.header("Transfer-Encoding") == "chunked" {
            response.body = try readChunks()
        } else {
            let length = response.header("Content-Length").flatMap { Int($0) } ?? 0
            response.body = try read(count: length)
        }
        return response
    }

    /// Reads to the end of the stream.
    func readToEnd() throws -> Data {
        var data = Data()
        while let piece = try receive(upTo: 64 << 10) { data += piece }
        return data
    }

    private func readChunks() throws -> Data {
        var body = Data()
        while true {
            let line = try read { $0.suffix(2) == Data("\r\n".utf8) }.text
            let size = Int(line.dropLast(1), radix: 16) ?? 0  // CR LF is one Character
            body += try read(count: size)
            _ = try read(count: 2)
            if size == 0 { return body }
        }
    }

    private func read(until isDone: (Data) -> Bool) throws -> Data {
        var data = Data()
        while !isDone(data) {
            guard let byte = try receive(upTo: 1) else { throw UnexpectedEnd(received: data) }
            data += byte
        }
        return data
    }

    private func read(count: Int) throws -> Data {
        var data = Data()
        while data.count < count {
            guard let piece = try receive(upTo: min(count - data.count, 256 << 10)) else { throw UnexpectedEnd(received: data) }
            data += piece
        }
        return data
    }

    private func receive(upTo count: Int) throws -> Data? {
        var data = Data(count: count)
        let received = try data.withUnsafeMutableBytes { try socket.receive(into: $0) }
        return received > 0 ? data.prefix(received) : nil
    }
}

extension Data {
    var text: String { String(decoding: self, as: UTF8.self) }
}
