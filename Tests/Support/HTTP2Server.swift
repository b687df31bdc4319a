// SPDX-License-Identifier: Apache-2.0

/// A server on 127.0.0.1 for frames of HTTP/2 without TLS (RFC 9113), whose script can disconnect or violate the protocol.
///
/// The preface and both settings are exchanged before the script runs. Received header blocks are not decoded.
public final class HTTP2Server: Sendable {
    /// A frame (RFC 9113, section 4.1).
    public struct Frame: Sendable {
        /// What it is: 0 DATA, 1 HEADERS, 3 RST_STREAM, 4 SETTINGS, 7 GOAWAY, 8 WINDOW_UPDATE.
        public var kind: UInt8
        /// 1 is END_STREAM, or ACK; 4 is END_HEADERS.
        public var flags: UInt8
        /// The stream; 0 for the connection.
        public var stream: UInt32
        /// What follows the head of nine bytes.
        public var payload: Data

        /// Makes a frame.
        public init(_ kind: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: Data = Data()) {
            (self.kind, self.flags, self.stream, self.payload) = (kind, flags, stream, payload)
        }

        /// The head of a response, without Huffman coding and with the length of the body as its only field.
        public static func head(_ status: Int, length: Int? = nil, ends: Bool = false, stream: UInt32) -> Frame {
            var block = Data([0x08, 3]) + Data("\(status)".utf8)
            if let length { block += Data([0x0F, 0x0D, UInt8("\(length)".utf8.count)]) + Data("\(length)".utf8) }
            return Frame(1, flags: ends ? 5 : 4, stream: stream, block)
        }

        /// A piece of a body.
        public static func data(_ bytes: Data, ends: Bool = false, stream: UInt32) -> Frame {
            Frame(0, flags: ends ? 1 : 0, stream: stream, bytes)
        }

        /// RST_STREAM with an error code (RFC 9113, section 7).
        public static func reset(_ code: UInt32, stream: UInt32) -> Frame { Frame(3, stream: stream, number(code)) }

        /// GOAWAY with the last stream that was looked at, and an error code.
        public static func goAway(last: UInt32, _ code: UInt32) -> Frame { Frame(7, number(last) + number(code)) }

        /// WINDOW_UPDATE.
        public static func window(_ size: UInt32, stream: UInt32) -> Frame { Frame(8, stream: stream, number(size)) }

        /// Whether the stream ends on the sender's side.
        public var endsStream: Bool { kind <= 1 && flags & 1 != 0 }

        private static func number(_ number: UInt32) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

        fileprivate var bytes: Data { Self.number(UInt32(payload.count)).dropFirst() + [kind, flags] + Self.number(stream) + payload }
    }

    /// A connection, for the thread of its script.
    public struct Connection: Sendable {
        /// 1 for the first one.
        public let number: Int
        fileprivate let socket: ConnectedSocket

        /// The next frame that comes in, settings and pings left out; `nil` when the client has closed the connection.
        public func nextFrame() throws -> Frame? {
            while let head = try read(9) {
                let count = head.prefix(3).reduce(0) { $0 << 8 | Int($1) }
                let stream = head.suffix(4).reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
                guard let payload = count > 0 ? try read(count) : Data() else { return nil }
                if head[3] != 4, head[3] != 6 { return Frame(head[3], flags: head[4], stream: stream, payload) }
            }
            return nil
        }

        /// Frames as they come in until one meets the condition, which is the last; all of them where the client closes before.
        public func frames(until isMet: (Frame) -> Bool) throws -> [Frame] {
            var frames: [Frame] = []
            while let frame = try nextFrame() {
                frames.append(frame)
                if isMet(frame) { break }
            }
            return frames
        }

        /// Sends frames.
        public func send(_ frames: Frame...) throws {
            try socket.send(frames.reduce(into: Data()) { $0 += $1.bytes })
        }

        /// Sends what is no frame.
        public func send(raw bytes: Data) throws { try socket.send(bytes) }

        /// Says nothing until the client has gone, or the server stops.
        public func waitUntilClosed() { socket.drain() }

        fileprivate func read(_ count: Int) throws -> Data? {
            var bytes = Data()
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
            defer { buffer.deallocate() }
            while bytes.count < count {
                let received = try socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count - bytes.count)]))
                guard received > 0 else { return nil }
                bytes += buffer[..<received]
            }
            return bytes
        }
    }

    private let listener: SocketListener

    /// Starts a server on a port that the system chooses; the script runs once a connection, which closes when it returns.
    public init(script: @escaping @Sendable (Connection) throws -> Void) throws {
        listener = try SocketListener { socket, number in
            let connection = Connection(number: number, socket: socket)
            do {
                guard try connection.read(24) != nil else { return }
                try connection.send(Frame(4), Frame(4, flags: 1))
                try script(connection)
                socket.shutDownWriting()
                socket.drain(timeout: .seconds(2))
            } catch {
                // The client has gone.
            }
        }
    }

    deinit { listener.stop(timeout: .seconds(10)) }

    /// `http://127.0.0.1:port` and a path.
    public func url(_ path: String) -> String { "http://127.0.0.1:\(listener.port)\(path)" }

    /// How many connections there were.
    public var connectionCount: Int { listener.connectionCount }
}
