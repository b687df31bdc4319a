// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Request and response of one attempt, as Foundation's types when somebody asks for them.
///
/// Those cost more than the rest of a small request together, so they are made on the asker's thread, once.
final class ResponseContext: Sendable {
    private struct Bridges {
        var request: URLRequest?
        var response: HTTPURLResponse?
    }

    /// The request of the last hop; `nil` when none could be made.
    let transfer: TransferRequest?
    /// The response's head; `nil` when none came.
    let head: ResponseHead?
    private let bridges: Lock<Bridges>

    init(transfer: TransferRequest?, head: ResponseHead?, request: URLRequest? = nil) {
        self.transfer = transfer
        self.head = head
        bridges = Lock(Bridges(request: request))
    }

    /// A context of given objects, for responses that users make themselves.
    init(request: URLRequest?, response: HTTPURLResponse?) {
        transfer = nil
        head = response.map { response in
            let fields = response.allHeaderFields.compactMap { name, value in
                (name as? String).map { HTTPHeader(name: $0, value: "\(value)") }
            }
            return ResponseHead(statusCode: response.statusCode, headers: HTTPHeaders(fields))
        }
        bridges = Lock(Bridges(request: request, response: response))
    }

    /// The request as it went out.
    var request: URLRequest? {
        bridges.withLock { bridges in
            if bridges.request == nil { bridges.request = transfer?.urlRequest }
            return bridges.request
        }
    }

    /// The response's status and header fields.
    var response: HTTPURLResponse? {
        bridges.withLock { bridges in
            if bridges.response == nil { bridges.response = makeResponse() }
            return bridges.response
        }
    }

    private func makeResponse() -> HTTPURLResponse? {
        guard let head, let transfer, let url = URL(string: transfer.url) else { return nil }
        return HTTPURLResponse(
            url: url, statusCode: head.statusCode, httpVersion: head.httpVersion, headerFields: head.headers.dictionary)
    }
}
