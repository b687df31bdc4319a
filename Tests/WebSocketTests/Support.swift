// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewHTTP
import CurlewTestSupport
import Dispatch
import Testing

@testable import CurlewWebSocket

func makeServer(
    answer: @escaping @Sendable (ServerRequest) -> String? = { _ in nil },
    fields: @escaping @Sendable (ServerRequest) -> [String] = { _ in [] }, _ script: @escaping WebSocketServer.Script
) throws -> WebSocketServer {
    try WebSocketServer(accept: { WebSocketHandshake.accept(for: $0) }, answer: answer, fields: fields, script: script)
}

func makeEchoServer() throws -> WebSocketServer {
    try makeServer { try $0.echo() }
}

/// Makes a server that accepts permessage-deflate, and echoes messages compressed as they were received.
func makeDeflateServer(_ parameters: String = "") throws -> WebSocketServer {
    try makeServer(fields: { _ in ["Sec-WebSocket-Extensions: permessage-deflate\(parameters)"] }) { try $0.echo() }
}

/// Returns the error that the operation throws.
func failure<R>(of operation: () async throws -> R) async -> (any Error)? {
    do {
        _ = try await operation()
        return nil
    } catch {
        return error
    }
}
