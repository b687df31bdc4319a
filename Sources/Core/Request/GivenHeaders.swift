// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// Header fields as the user gave them, kept because `URLRequest` loses order and repetition.
struct GivenHeaders: Sendable {
    let headers: HTTPHeaders
    let fields: [String: String]

    init(_ headers: HTTPHeaders, in urlRequest: URLRequest) {
        self.headers = headers
        fields = (urlRequest.allHTTPHeaderFields ?? [:]).filter { name, _ in headers.contains { $0.isNamed(name) } }
    }
}

extension URLRequest {
    /// The header fields: the unchanged ones in their given order, then the others sorted by name.
    func orderedHeaders(like given: GivenHeaders?) -> HTTPHeaders {
        var fields = allHTTPHeaderFields ?? [:]
        guard let given else { return HTTPHeaders(fields) }
        if fields == given.fields { return given.headers }
        var result = HTTPHeaders()
        for header in given.headers {
            guard let name = given.fields.keys.first(where: { header.isNamed($0) }), given.fields[name] == value(forHTTPHeaderField: name)
            else { continue }
            result.append(header)
        }
        for header in result { fields = fields.filter { !header.isNamed($0.key) } }
        return HTTPHeaders(Array(result) + Array(HTTPHeaders(fields)))
    }
}
