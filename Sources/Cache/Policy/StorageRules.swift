// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The rules of a private HTTP cache for storing, updating and invalidating responses (RFC 9111, sections 3 and 4.4).
package enum StorageRules {
    /// A response that was received, as far as the rules see it.
    package struct Received: Sendable {
        /// The status code.
        package let statusCode: Int
        /// All fields.
        package let headers: HTTPHeaders
        /// When its request was sent, in seconds since 1970.
        package let requestTime: Double
        /// When its head was received, in seconds since 1970.
        package let responseTime: Double

        /// Creates a description of a response.
        package init(statusCode: Int, headers: HTTPHeaders, requestTime: Double, responseTime: Double) {
            self.statusCode = statusCode
            self.headers = headers
            self.requestTime = requestTime
            self.responseTime = responseTime
        }
    }

    /// Hop-by-hop fields, and `Set-Cookie`: a stored cookie would overwrite newer ones whenever the response is used.
    private static let unstoredFields = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
        "Set-Cookie", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]
    /// Fields that describe the stored bytes, which a response without them does not update (section 3.2): the body is stored decoded.
    private static let contentFields = ["Content-Encoding", "Content-Length", "Content-Range"]
    /// Final statuses that the rules know, as `must-understand` demands (section 5.2.2.3).
    private static let understood: Set<Int> = [
        200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308, 400, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414,
        415,
        416, 417, 421, 422, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 511,
    ]
    /// Statuses that are never stored: 304, which updates, and challenges, which are for one client.
    private static let neverStored: Set<Int> = [304, 401, 407]

    // MARK: Storing

    /// Returns the head under which a response to a GET is stored, without regard to its body; `nil` if it must not be stored (section 3).
    ///
    /// Responses to other methods are not stored: to HEAD they update (``headUpdate(_:by:request:)``), those to POST, which RFC 9111 allows
    /// to store, are of no use to a client.
    package static func head(of received: Received, url: String, request: CacheRequest) -> StoredResponse? {
        guard request.method == .get, received.statusCode >= 200, !neverStored.contains(received.statusCode) else { return nil }
        guard !request.directives.has(.noStore) else { return nil }
        let facts = FreshnessFacts(received.headers)
        let directives = facts.directives
        if directives.has(.mustUnderstand) {
            guard understood.contains(received.statusCode) else { return nil }
        } else if directives.has(.noStore) {
            return nil
        }
        let isExplicit = facts.isExplicit || directives.has(.isPublic) || directives.has(.isPrivate)
        guard FreshnessFacts.isHeuristicallyCacheable(received.statusCode) || isExplicit else { return nil }
        guard let selection = SelectionKey(response: received.headers, isPublic: directives.has(.isPublic), request: request.headers) else {
            return nil
        }
        var part: StoredResponse.Part?
        if received.statusCode == 206 {
            // Parts of a coded body are not what is stored, which is decoded. Those without a strong validator serve the ranges that they
            // have, but are not combined (section 3.4).
            guard received.headers.value(for: "Content-Encoding") == nil, let text = received.headers.value(for: "Content-Range"),
                case .part(let first, let last, let total?)? = ContentRange(text)
            else { return nil }
            part = .init(offset: first, length: last - first + 1, total: total)
        } else if request.range != nil, received.statusCode != 200 {
            return nil
        }
        return StoredResponse(
            url: url, statusCode: received.statusCode == 206 ? 200 : received.statusCode,
            headers: storable(received.headers, isPart: part != nil),
            requestTime: received.requestTime, responseTime: received.responseTime, selection: selection, part: part,
            partition: request.partition)
    }

    /// The head of the beginning of a response whose transfer broke off; `nil` if it can't be completed later (section 3.3).
    ///
    /// - Parameters:
    ///   - length: the number of bytes received.
    ///   - total: the announced length of the body.
    package static func beginning(of response: StoredResponse, length: Int64, total: Int64) -> StoredResponse? {
        guard response.statusCode == 200, response.part == nil, length > 0, length < total, response.strongValidator != nil else {
            return nil
        }
        return response.with(part: .some(.init(offset: 0, length: length, total: total)))
    }

    /// The fields that are stored of a response: all but hop-by-hop ones and cookies (section 3.1); of a part also without `Content-Range`
    /// and `Content-Length`, which are the part's.
    package static func storable(_ headers: HTTPHeaders, isPart: Bool = false) -> HTTPHeaders {
        let named = Set(headers.members(of: "Connection").map { $0.lowercased() })
        let dropped = unstoredFields + (isPart ? ["Content-Range", "Content-Length"] : [])
        return HTTPHeaders(
            headers.filter { field in
                !dropped.contains { field.isNamed($0) } && (named.isEmpty || !named.contains(field.name.lowercased()))
            })
    }

    // MARK: Updating

    /// The stored response that a 304 has validated, updated (sections 3.2 and 4.3.4); `nil` if the 304 is for another representation.
    ///
    /// - Parameter request: the fields of the request that was answered, as the response may have got another `Vary`.
    package static func updated(_ stored: StoredResponse, by received: Received, request: HTTPHeaders) -> StoredResponse? {
        if let tag = received.headers.values(for: "ETag").first.flatMap({ EntityTag($0) }) {
            guard let own = stored.entityTag, tag.isWeak || own.isWeak ? tag.matchesWeakly(own) : tag.matchesStrongly(own) else {
                return nil
            }
        } else if let modified = received.headers.values(for: "Last-Modified").first, stored.entityTag == nil {
            guard modified == stored.lastModified else { return nil }
        }
        return merged(stored, received, request)
    }

    /// The stored response to a GET after a response to HEAD; `nil` if that shows that the stored one has changed, or forbids storing it
    /// (section 4.3.5).
    package static func headUpdate(_ stored: StoredResponse, by received: Received, request: HTTPHeaders) -> StoredResponse? {
        guard received.statusCode == 200, stored.statusCode == 200 else { return nil }
        let own = stored.headers
        for name in ["ETag", "Last-Modified", "Content-Length"] {
            if let value = received.headers.value(for: name), let stored = own.value(for: name), value != stored { return nil }
        }
        return merged(stored, received, request)
    }

    /// `nil` if the response must not be stored any longer.
    private static func merged(_ stored: StoredResponse, _ received: Received, _ request: HTTPHeaders) -> StoredResponse? {
        var fresh = storable(received.headers)
        for name in contentFields { fresh.remove(name: name) }
        var headers = stored.headers
        // The age is that of the newer response, which may have none.
        headers.remove(name: "Age")
        headers.merge(fresh)
        let directives = CacheDirectives(headers)
        guard !directives.has(.noStore) || directives.has(.mustUnderstand),
            let selection = SelectionKey(response: headers, isPublic: directives.has(.isPublic), request: request)
        else { return nil }
        return StoredResponse(
            url: stored.url, statusCode: stored.statusCode, headers: headers, requestTime: received.requestTime,
            responseTime: received.responseTime, selection: selection, part: stored.part, partition: stored.partition)
    }

    // MARK: Combining

    /// The union of a stored part and a received one of the same representation; `nil` if they leave a gap or differ in their validators
    /// (RFC 9111, section 3.4; RFC 9110, section 15.3.7.3).
    package static func combined(_ stored: StoredResponse, _ received: StoredResponse) -> StoredResponse? {
        guard let own = stored.part, let new = received.part, own.total == new.total, stored.strongValidator != nil,
            stored.strongValidator == received.strongValidator, new.offset == own.end
        else { return nil }
        let length = own.length + new.length
        let isWhole = own.offset == 0 && length == own.total
        var headers = stored.headers
        headers.merge(received.headers)
        return stored.with(
            headers: headers, requestTime: received.requestTime, responseTime: received.responseTime,
            part: .some(isWhole ? nil : .init(offset: own.offset, length: length, total: own.total)))
    }

    // MARK: Invalidating

    /// What a response invalidates.
    package struct Invalidation: Sendable, Hashable {
        /// The URLs whose stored responses are removed, without fragments.
        package var urls: [String] = []
        /// The origin all of whose responses are removed (`Clear-Site-Data`).
        package var origin: HTTPOrigin?
        /// Whether nothing is.
        package var isEmpty: Bool { urls.isEmpty && origin == nil }
    }

    /// What a response invalidates: after an unsafe method that succeeded, its URL and those of the same origin that it names (RFC 9111,
    /// section 4.4); with `Clear-Site-Data`, everything of its origin, if the connection is secure (W3C Clear Site Data, section 3.1).
    ///
    /// - Parameter resolve: resolves a reference against the URL; `nil` if that is impossible.
    package static func invalidation(
        by received: Received, method: HTTPMethod, url: String, resolve: (_ reference: String) -> String?
    ) -> Invalidation {
        var result = Invalidation()
        let origin = HTTPOrigin(url: url)
        if !method.isSafe, (200..<400).contains(received.statusCode) {
            result.urls = [identity(of: url)]
            for name in ["Location", "Content-Location"] {
                guard let reference = received.headers.values(for: name).first, let other = resolve(reference),
                    let otherOrigin = HTTPOrigin(url: other), otherOrigin == origin
                else { continue }
                let plain = identity(of: other)
                if !result.urls.contains(plain) { result.urls.append(plain) }
            }
        }
        if let origin, origin.scheme == "https",
            received.headers.members(of: "Clear-Site-Data").contains(where: { ["\"cache\"", "\"*\""].contains($0) })
        {
            result.origin = origin
        }
        return result
    }

    /// The URL by which responses are stored and found: without its fragment, which is no part of a request, and normalized: scheme and host
    /// in lower case, without the scheme's default port, with a slash for an empty path (RFC 9110, section 4.2.3).
    package static func identity(of url: String) -> String {
        let whole = url.utf8.firstIndex(of: UInt8(ascii: "#")).map { String(url[..<$0]) } ?? url
        let bytes = whole.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else { return whole }
        let start = bytes.index(colon, offsetBy: 3)
        let end = bytes[start...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
        guard !bytes[start..<end].contains(UInt8(ascii: "@")) else { return whole }
        let hasCapitals = bytes[..<end].contains { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        let hasPath = end != bytes.endIndex && bytes[end] == UInt8(ascii: "/")
        var authority = whole[start..<end]
        if let port = authority.utf8.lastIndex(of: UInt8(ascii: ":")) {
            let standard = bytes.distance(from: bytes.startIndex, to: colon) == "https".utf8.count ? ":443" : ":80"
            if authority[port...] == ":" || authority[port...] == standard { authority = authority[..<port] }
        }
        guard hasCapitals || !hasPath || authority.endIndex != end else { return whole }
        return "\(whole[..<start].lowercased())\(authority.lowercased())\(hasPath ? "" : "/")\(whole[end...])"
    }
}
