// SPDX-License-Identifier: Apache-2.0
import CurlewWebSocket

extension ServiceError {
    /// Converts a WebSocket's error to a stream's.
    init(_ error: WebSocketError) {
        self =
            switch error {
            case .invalidRequest(.invalidURL), .invalidRequest(.unsupportedScheme): .invalidURL
            case .invalidRequest, .pingTooLarge, .invalidClosure: .invalidRequest(message: "\(error)")
            case .handshakeRejected(let rejection): .requestFailed(statusCode: rejection.response.statusCode, response: rejection.body)
            case .handshakeFailed: .invalidResponse
            case .protocolViolation(let code, _): .closedStream(code: Int(code.rawValue))
            case .messageTooLarge: .closedStream(code: Int(WebSocketCloseCode.messageTooBig.rawValue))
            case .closed(let closure): .closedStream(code: Int(closure.code.rawValue))
            case .timedOut: .timeout
            case .encodingFailed(let cause): cause as? ServiceError ?? .encodingFailed(cause)
            case .decodingFailed(_, let cause): ServiceError(cause)
            }
    }
}
