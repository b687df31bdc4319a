// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewURLLoading
import CurlewWebSocket

/// A WebSocket (RFC 6455).
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {  // as its superclass
    /// Why a WebSocket was closed.
    public enum CloseCode: Int, Sendable {
        /// None yet.
        case invalid = 0
    }
}
