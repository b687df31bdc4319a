// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// How a WebSocket works: limits, times, compression, reconnecting.
///
/// TLS, proxy and connect timeout are those of the session.
public struct WebSocketConfiguration: Sendable {
    /// How long the server may take to answer the handshake, from the first attempt to connect; 30 seconds by default, `nil` for ever.
    public var handshakeTimeout: Duration? = .seconds(30)

    /// How long the server may take to answer a close frame and to end the connection; 10 seconds by default.
    ///
    /// Then the connection is cut. What was sent before the close frame has to leave in this time too, and a connection that does not stand
    /// when it is to be closed has to come about in it.
    public var closeTimeout = Duration.seconds(10)

    /// How often a ping is sent, to keep the connection alive and to notice when it is not; `nil`, the default, sends none, and neither does
    /// what is not positive.
    public var pingInterval: Duration?

    /// How long the server may take to answer such a ping; 20 seconds by default, `nil` for ever.
    public var pongTimeout: Duration? = .seconds(20)

    /// The largest message that is received, in bytes after decompression; 16 MiB by default. A larger one ends the connection with
    /// ``WebSocketCloseCode/messageTooBig``.
    public var maximumMessageSize = 16 << 20

    /// The largest frame that is received, in bytes as they come; 16 MiB by default. A larger one ends the connection likewise.
    public var maximumFrameSize = 16 << 20

    /// How much waits to be read before no more is received, in bytes; 1 MiB by default.
    ///
    /// A message counts with its size and 64 bytes. As long as nobody reads and this much waits, pings go unanswered.
    public var receiveBufferSize = 1 << 20

    /// How much waits to be sent before ``WebSocket/send(_:)-(WebSocketMessage)`` waits, in bytes; 64 KiB by default. 0 has it wait until
    /// the message was handed to the network.
    public var sendBufferSize = 64 << 10

    /// The largest payload of a frame that is sent, in bytes; larger messages are sent in fragments. `nil`, the default, makes none.
    public var outgoingFrameSize: Int?

    /// How messages are compressed if the server agrees (permessage-deflate; RFC 7692); `nil` does not offer it.
    ///
    /// Who can read the wire and have bytes of their own sent beside a secret can guess at it by the size (RFC 7692, section 8).
    public var compression: WebSocketCompression? = WebSocketCompression()

    /// Whether a connection that was lost is made again; never by default.
    public var reconnection = WebSocketReconnection.never

    /// What the times are measured by.
    package var clock: any Clock<Duration> = ContinuousClock()

    /// Makes a configuration with the defaults.
    public init() {}
}

/// How messages are compressed (permessage-deflate; RFC 7692, section 7.1).
public struct WebSocketCompression: Sendable, Hashable {
    /// From 1, the fastest, to 9, the smallest; 6 by default.
    public var level = 6

    /// The smallest message that is compressed, in bytes; 64 by default.
    public var minimumSize = 64

    /// Whether our messages refer to earlier ones, which makes them smaller and takes some 300 KiB of memory; `true` by default. Not if the
    /// server does not want it (`client_no_context_takeover`).
    public var clientKeepsContext = true

    /// Whether the server may refer to its earlier messages; `true` by default. If not, the handshake fails where the server does not agree
    /// (`server_no_context_takeover`).
    public var serverKeepsContext = true

    /// The base-2 logarithm of the window that our messages are compressed with, 8 to 15; `nil`, the default, takes what the server
    /// wants, or 15 (`client_max_window_bits`). With 8, which zlib can't, our messages go out uncompressed.
    public var clientMaximumWindowBits: Int? {
        didSet { clientMaximumWindowBits = clientMaximumWindowBits.map { min(max($0, 8), 15) } }
    }

    /// The same of the server's messages, which the handshake then insists on; `nil`, the default, leaves it to the server
    /// (`server_max_window_bits`).
    public var serverMaximumWindowBits: Int? {
        didSet { serverMaximumWindowBits = serverMaximumWindowBits.map { min(max($0, 8), 15) } }
    }

    /// Makes a compression with the defaults.
    public init() {}
}
