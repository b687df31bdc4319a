// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The request and response of an attempt, converted to Foundation's types when read.
///
/// A `URLRequest` and an `HTTPURLResponse` take more time than the rest of a small request, so each is created at the first access, on the
/// thread of the caller.
final class ResponseContext: Sendable {
    private struct Bridges {
        var request: URLRequest?
        var response: HTTPURLResponse?
    }

    /// The request, or its last follow-up; `nil` if none could be created.
    let transfer: TransferRequest?
    /// The response's head; `nil` if none was received.
    let head: ResponseHead?
    /// The fields that followed the response's body.
    let trailers: HTTPHeaders
    private let bridges: Lock<Bridges>

    init(transfer: TransferRequest?, head: ResponseHead?, trailers: HTTPHeaders = HTTPHeaders(), request: URLRequest? = nil) {
        self.transfer = transfer
        self.head = head
        self.trailers = trailers
        bridges = Lock(Bridges(request: request))
    }

    /// Creates a context from Foundation's objects, for responses that users create themselves.
    init(request: URLRequest?, response: HTTPURLResponse?) {
        transfer = nil
        trailers = HTTPHeaders()
        head = response.map { response in
            let fields = response.allHeaderFields.compactMap { name, value in
                (name as? String).map { HTTPHeader(name: $0, value: "\(value)") }
            }
            return ResponseHead(statusCode: response.statusCode, headers: HTTPHeaders(fields))
        }
        bridges = Lock(Bridges(request: request, response: response))
    }

    /// The request as sent.
    var request: URLRequest? {
        bridges.withLock { bridges in
            if bridges.request == nil { bridges.request = transfer?.urlRequest }
            return bridges.request
        }
    }

    /// The response's status and header fields.
    var response: HTTPURLResponse? {
        bridges.withLock { bridges in
            if bridges.response == nil { bridges.response = makeResponse(to: bridges.request) }
            return bridges.response
        }
    }

    /// - Parameter request: for a handshake on a raw connection, which has no transfer.
    private func makeResponse(to request: URLRequest?) -> HTTPURLResponse? {
        guard let head, let url = transfer.map({ URL(string: $0.url) }) ?? request?.url else { return nil }
        return HTTPURLResponse(
            url: url, statusCode: head.statusCode, httpVersion: head.httpVersion, headerFields: head.headers.dictionary)
    }
}
