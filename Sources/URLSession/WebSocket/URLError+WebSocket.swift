// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewTransport
import CurlewURLLoading
import CurlewWebSocket

extension URLError {
    /// The error of a WebSocket as its program sees it, with the error of Curlew under `NSUnderlyingErrorKey`: that knows the close code.
    static func of(webSocket error: any Error, _ task: URLSessionTask) -> any Error {
        guard let error = error as? WebSocketError else { return of(error, task) }
        let wasOpen = (task.response as? HTTPURLResponse)?.statusCode == 101
        return of(error.code(wasOpen: wasOpen), task, describedBy: "\(error)", underlying: error)
    }

    /// An error with a description of its own.
    static func of(
        _ code: URLError.Code, _ task: URLSessionTask, describedBy description: String, underlying: (any Error)? = nil
    ) -> URLError {
        var info = (of(code, task) as NSError).userInfo
        info[NSLocalizedDescriptionKey] = description
        if let underlying { info[NSUnderlyingErrorKey] = underlying }
        return URLError(code, userInfo: info)
    }
}

extension WebSocketError {
    /// - Parameter wasOpen: whether the handshake has succeeded.
    fileprivate func code(wasOpen: Bool) -> URLError.Code {
        switch self {
        case .invalidRequest(.unsupportedScheme): .unsupportedURL
        case .invalidRequest: .badURL
        case .handshakeRejected, .handshakeFailed: .badServerResponse
        case .protocolViolation: .cannotParseResponse
        case .messageTooLarge: .dataLengthExceedsMaximum
        // A server that ends the connection in place of a response has not answered the handshake.
        case .closed: wasOpen ? .networkConnectionLost : .badServerResponse
        case .timedOut: .timedOut
        case .invalidClosure, .pingTooLarge, .encodingFailed, .decodingFailed: .unknown
        }
    }
}

extension HTTPURLResponse {
    /// The response of a handshake; `nil` if Foundation does not take it.
    convenience init?(_ head: ResponseHead, of url: URL) {
        self.init(url: url, statusCode: head.statusCode, httpVersion: head.httpVersion, headerFields: head.headers.dictionary)
    }
}
