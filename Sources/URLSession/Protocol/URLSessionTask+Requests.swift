// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading

// What of a task's request Core's has no place for: the properties of `URLProtocol`, the timeout, the kind of service. The requests that a
// program sees are therefore copies of the task's own, with what Core has changed.

extension URLSessionTask {
    /// The request that is being offered to classes; `nil` at other times.
    var offeredRequest: URLRequest? { values.withLock { $0.offered } }

    /// Notes the request that a delegate or a class has chosen for a redirect: those that follow are copies of it.
    func noteChosen(_ request: URLRequest) { values.withLock { $0.chosen = request } }

    /// A request of Core as the program sees it, with the task's properties.
    func shown(_ request: URLRequest) -> URLRequest {
        var shown = copy(of: request)
        // A stream is not visible in Core's requests, so the task's own is kept as long as it is the body.
        if request.httpMethod != shown.httpMethod || request.httpBody != nil || shown.httpBody != nil { shown.httpBody = request.httpBody }
        shown.httpMethod = request.httpMethod
        return shown
    }

    /// A request that Core offers to classes, with the task's properties.
    func offered(_ request: URLRequest) -> URLRequest {
        var offered = copy(of: request)
        if let stream = request.httpBodyStream { offered.httpBodyStream = stream } else { offered.httpBody = request.httpBody }
        offered.httpMethod = request.httpMethod
        return offered
    }

    /// A copy of the task's own request with the URL and the fields of another.
    private func copy(of request: URLRequest) -> URLRequest {
        let (chosen, replacement) = values.withLock { ($0.chosen, $0.replacement) }
        // Foundation on Linux traps when a copy of a request without a URL is changed.
        guard let url = request.url, var copy = chosen ?? replacement ?? work.request, copy.url != nil else { return request }
        copy.url = url
        copy.allHTTPHeaderFields = fields(of: request, given: copy)
        return copy
    }

    /// The fields of a request, without the defaults that the session has added: they are not part of a request in Foundation.
    private func fields(of request: URLRequest, given: URLRequest) -> [String: String]? {
        guard var fields = request.allHTTPHeaderFields else { return nil }
        for header in URLSessionConfiguration.defaultHeaders
        where fields[header.name] == header.value && given.value(forHTTPHeaderField: header.name) == nil && !session.adds(header) {
            fields[header.name] = nil
        }
        return fields.isEmpty ? given.allHTTPHeaderFields.map { _ in [:] } : fields
    }
}

extension URLRequest {
    /// Whether another request is the same; Foundation on Linux compares neither fields nor bodies.
    func isSent(like other: URLRequest) -> Bool {
        self == other && allHTTPHeaderFields == other.allHTTPHeaderFields && httpBody == other.httpBody
    }
}
