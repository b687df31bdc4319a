// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The configuration of a WebSocket: limits, timeouts, compression, reconnection.
///
/// TLS, proxy and connect timeout are those of the session, or of the WebSocket's `RequestOptions`.
public struct WebSocketConfiguration: Sendable {
    /// The timeout of connecting and the handshake, for each attempt; 30 seconds by default, `nil` for none. A deadline bounds all of them.
    public var handshakeTimeout: Duration? = .seconds(30)

    /// The timeout of the server's close frame and its closing of the connection; 10 seconds by default.
    ///
    /// The connection is then aborted. Messages queued before the close frame must be sent within this time too, and a connection that is
    /// not open yet when it is closed must open within it.
    public var closeTimeout = Duration.seconds(10)

    /// The interval between pings, which keep the connection alive and detect its loss; `nil`, the default, or a value that is not positive
    /// sends none.
    public var pingInterval: Duration?

    /// The timeout of the pong to such a ping; 20 seconds by default, `nil` for none.
    public var pongTimeout: Duration? = .seconds(20)

    /// The maximum size of a received message, in bytes after decompression; 16 MiB by default. A larger one closes the connection with
    /// ``WebSocketCloseCode/messageTooBig``.
    ///
    /// A message that continues without contents closes it with ``WebSocketCloseCode/policyViolation``: more than 1,000 frames without a
    /// payload, or compressed bytes beyond 64 KiB that are more than 16 times what they contain.
    public var maximumMessageSize = 16 << 20

    /// The maximum size of a received frame's payload, in bytes on the wire; 16 MiB by default. A larger one closes the connection
    /// likewise.
    public var maximumFrameSize = 16 << 20

    /// The size of the queue of received messages at which receiving is suspended (backpressure), in bytes; 1 MiB by default.
    ///
    /// Each message counts with its size plus 64 bytes. While receiving is suspended, pings are not answered.
    public var receiveBufferSize = 1 << 20

    /// The size of the queue of messages to send beyond which ``WebSocket/send(_:)-(WebSocketMessage)`` waits, in bytes; 64 KiB by default.
    /// With 0, it waits until the message has been written.
    public var sendBufferSize = 64 << 10

    /// The maximum payload of a sent frame, in bytes; larger messages are fragmented. `nil`, the default, never fragments.
    public var outgoingFrameSize: Int?

    /// The compression of messages, if the server supports it (permessage-deflate; RFC 7692); `nil` does not offer it.
    ///
    /// An attacker who observes the traffic, and can add text to messages that contain a secret, can infer the secret from their size (RFC
    /// 7692, section 8).
    public var compression: WebSocketCompression? = WebSocketCompression()

    /// Whether and how a lost connection is re-established; never by default.
    public var reconnection = WebSocketReconnection.never

    /// Takes part in each handshake; `nil`, the default, for none.
    package var layer: (any HandshakeLayer)?

    /// The clock that measures the timeouts.
    package var clock: any Clock<Duration> = ContinuousClock()

    /// Makes a configuration with the defaults.
    public init() {}
}

/// The parameters of message compression (permessage-deflate; RFC 7692, section 7.1).
public struct WebSocketCompression: Sendable, Hashable {
    /// The compression level, from 1, the fastest, to 9, the smallest; 6 by default.
    public var level = 6

    /// The minimum size of a compressed message, in bytes; 64 by default.
    public var minimumSize = 64

    /// Whether sent messages may refer to earlier ones, which makes them smaller and takes about 300 KiB of memory; `true` by default.
    /// Disabled if the server asks for it (`client_no_context_takeover`).
    public var clientKeepsContext = true

    /// Whether the server may refer to its earlier messages; `true` by default. If `false`, the handshake fails unless the server agrees
    /// (`server_no_context_takeover`).
    public var serverKeepsContext = true

    /// The base-2 logarithm of the window for sent messages, 8 to 15; `nil`, the default, uses the server's limit, or 15
    /// (`client_max_window_bits`). With 8, which zlib does not support, messages are sent uncompressed.
    public var clientMaximumWindowBits: Int? {
        didSet { clientMaximumWindowBits = clientMaximumWindowBits.map { min(max($0, 8), 15) } }
    }

    /// The base-2 logarithm of the window for received messages, which the handshake then requires; `nil`, the default, leaves it to the
    /// server (`server_max_window_bits`).
    public var serverMaximumWindowBits: Int? {
        didSet { serverMaximumWindowBits = serverMaximumWindowBits.map { min(max($0, 8), 15) } }
    }

    /// Makes a compression with the defaults.
    public init() {}
}
