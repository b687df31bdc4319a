// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension EasyHandle {
    /// The codings that Curlew requests unless the request has an `Accept-Encoding` of its own (RFC 9110, section 12.5.3).
    ///
    /// Without weights. A session that has `SessionManager.defaultHTTPHeaders`, such as the default one, gives its requests without `Range`
    /// the weighted list of `SessionManager.acceptEncoding(_:)` before they get here.
    static func acceptedCodings(withRange hasRange: Bool) -> String {
        // A piece of a coded body can't be decoded.
        hasRange ? "identity" : ContentDecoder.accepted
    }

    /// The lines of a request's header as `CURLOPT_HTTPHEADER` takes them.
    func headerLines(for request: TransferRequest) -> [String] {
        var lines: [String] = []
        lines.reserveCapacity(request.headers.count + 2)
        var saysAcceptEncoding = false
        var saysRange = false
        var saysExpect = false
        var saysContentType = false
        for header in request.headers {
            if header.isNamed("Content-Length") || header.isNamed("Transfer-Encoding") { continue }
            if header.isNamed("Accept-Encoding") { saysAcceptEncoding = true }
            if header.isNamed("Range") { saysRange = true }
            if header.isNamed("Expect") { saysExpect = true }
            if header.isNamed("Content-Type") { saysContentType = true }
            // For libcurl, "Name:" removes a field; "Name;" sends it with an empty value.
            let isBlank = header.value.utf8.allSatisfy { $0.isBlank }
            lines.append(isBlank ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        if request.prepared.options.decodesContent, !saysAcceptEncoding {
            lines.append("Accept-Encoding: \(Self.acceptedCodings(withRange: saysRange))")
        }
        // For large bodies, libcurl adds "Expect: 100-continue" and waits for a second, and many servers reply with 417. An empty value
        // removes the field. Placed before the user's own field it keeps libcurl, which only looks at the first, from repeating the request
        // after a 417.
        if saysExpect { lines.insert("Expect:", at: 0) } else if request.body != nil { lines.append("Expect:") }
        // Otherwise libcurl labels an empty body as a form.
        if request.body == nil, request.method.saysWhenEmpty, !saysContentType { lines.append("Content-Type:") }
        return lines
    }
}
