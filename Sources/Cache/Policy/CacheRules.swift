// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The rules of a private HTTP cache for using stored responses (RFC 9111, section 4).
///
/// Pure functions of a request, what is stored for its URL, and the time.
package enum CacheRules {
    /// Decides how a request is answered.
    ///
    /// - Parameters:
    ///   - stored: the stored responses for the request's URL, in any order.
    ///   - now: in seconds since 1970.
    ///   - validatesInBackground: `false` to disregard `stale-while-revalidate`, which allows a validation in the background, and does not
    ///     require it (RFC 5861, section 3).
    package static func decide(
        _ request: CacheRequest, _ stored: [StoredResponse], now: Double, validatesInBackground: Bool = true
    ) -> CacheDecision {
        guard request.isCacheable else { return forward(request, .method, isBypass: true) }
        guard request.mode != .ignoresStored else { return .forward(.ignored, isBypass: true) }
        guard !request.hasPreconditions else { return forward(request, .conditional, isBypass: true) }
        guard let index = selected(request, stored) else {
            if request.isConditional { return forward(request, .conditional, isBypass: true) }
            return forward(request, stored.isEmpty ? .notStored : .otherVariant, isBypass: false)
        }
        let response = stored[index]
        let delivery = delivery(of: response, for: request)
        switch use(of: response, by: request, now: now, validatesInBackground: validatesInBackground) {
        case .serve(let reason, let isStale, let validates):
            guard let delivery else {
                // The part that is stored is not enough, or has no ranges.
                guard request.range == nil, !request.isConditional, request.mode != .storedOnly, !request.directives.has(.onlyIfCached),
                    let fields = completion(of: response)
                else { return forward(request, .otherRange, isBypass: false) }
                return .complete(index, fields)
            }
            return .serve(index, delivery, reason, isStale: isStale, validates: validates)
        case .validate(let reason):
            guard !mustNotForward(request) else { return .fail }
            // Only the host's 304 answers a request with conditions of its own.
            guard !request.isConditional else { return .forward(.conditional, isBypass: true) }
            guard delivery != nil, let conditions = conditions(for: response) else { return .forward(reason, isBypass: false) }
            return .validate(index, conditions, reason)
        }
    }

    private static func forward(_ request: CacheRequest, _ reason: CacheReason, isBypass: Bool) -> CacheDecision {
        mustNotForward(request) ? .fail : .forward(reason, isBypass: isBypass)
    }

    /// Whether the request forbids asking the host (RFC 9111, section 5.2.1.7).
    private static func mustNotForward(_ request: CacheRequest) -> Bool {
        request.mode == .storedOnly || request.directives.has(.onlyIfCached)
    }

    // MARK: Selection

    /// The most recent of the stored responses that the request selects (section 4.1); a whole one before a part.
    private static func selected(_ request: CacheRequest, _ stored: [StoredResponse]) -> Int? {
        var best: Int?
        for (index, response) in stored.enumerated()
        where response.partition == request.partition && response.selection.matches(request.headers) {
            guard let current = best else {
                best = index
                continue
            }
            let (old, new) = (stored[current], response)
            if (old.part == nil) != (new.part == nil) {
                if new.part == nil { best = index }
            } else if (new.date ?? new.responseTime) > (old.date ?? old.responseTime) {
                best = index
            }
        }
        return best
    }

    // MARK: Freshness

    private enum Use {
        case serve(CacheReason, isStale: Bool, validates: Bool)
        case validate(CacheReason)
    }

    private static func use(of response: StoredResponse, by request: CacheRequest, now: Double, validatesInBackground: Bool) -> Use {
        let remaining = response.remaining(at: now)
        switch request.mode {
        case .storedOrHost, .storedOnly:
            return .serve(remaining > 0 ? .fresh : .allowedByRequest, isStale: remaining <= 0, validates: false)
        case .revalidates:
            // A fresh immutable response is not validated by a reload either (RFC 8246, section 2), if TLS has protected it (section 3).
            guard response.directives.has(.immutable), response.url.hasBytePrefix("https:"), remaining > 0,
                !response.directives.has(.noCache)
            else {
                return .validate(.requestedByRequest)
            }
            return .serve(.fresh, isStale: false, validates: false)
        case .protocolRules, .ignoresStored: break
        }
        let wanted = request.directives
        guard !wanted.has(.noCache), wanted.noCacheFields.isEmpty else { return .validate(.requestedByRequest) }
        guard !response.directives.has(.noCache) else { return .validate(.requiredByResponse) }
        if let limit = wanted.maxAge, response.age(at: now) > Double(limit) { return .validate(.requestedByRequest) }
        if remaining > 0 {
            guard remaining >= Double(wanted.minFresh ?? 0) else { return .validate(.requestedByRequest) }
            return .serve(.fresh, isStale: false, validates: false)
        }
        guard !response.directives.has(.mustRevalidate) else { return .validate(.stale) }
        // What the request accepts counts before what the response allows: it needs no validation.
        if let accepted = wanted.maxStale, accepted == CacheDirectives.longest || -remaining <= Double(accepted), wanted.minFresh == nil {
            return .serve(.allowedByRequest, isStale: true, validates: false)
        }
        if validatesInBackground, let allowed = response.directives.staleWhileRevalidate, -remaining <= Double(allowed),
            wanted.maxAge == nil, wanted.minFresh == nil, !wanted.has(.onlyIfCached), response.hasValidator || allowed > 0
        {
            return .serve(.staleWhileRevalidate, isStale: true, validates: true)
        }
        return .validate(.stale)
    }

    /// The stored response that may be used if the host can't be reached, or answers with a server's error; `nil` if none may.
    package static func fallback(for request: CacheRequest, _ stored: [StoredResponse], now: Double) -> Int? {
        guard request.isCacheable, !request.isConditional, request.range == nil, let index = selected(request, stored),
            mayServeAfterError(stored[index], to: request, now: now)
        else { return nil }
        return index
    }

    /// The stored responses that the request selects, for updates by a response to it.
    package static func allSelected(_ request: CacheRequest, _ stored: [StoredResponse]) -> [Int] {
        stored.indices.filter { stored[$0].partition == request.partition && stored[$0].selection.matches(request.headers) }
    }

    /// Whether a stale response may be used because the host can't be reached, or answers with a server's error (RFC 5861, section 4).
    package static func mayServeAfterError(_ response: StoredResponse, to request: CacheRequest, now: Double) -> Bool {
        guard request.mode == .protocolRules, !response.directives.has(.mustRevalidate), !response.directives.has(.noCache),
            !request.directives.has(.noCache), response.part == nil
        else { return false }
        let allowed = [response.directives.staleIfError, request.directives.staleIfError].compactMap { $0 }.max()
        guard let allowed else { return false }
        if let limit = request.directives.maxAge, response.age(at: now) > Double(limit) + Double(allowed) { return false }
        return -response.remaining(at: now) <= Double(allowed)
    }

    /// Whether a status is an error in place of which a stale response may be used (RFC 5861, section 4).
    package static func isServerError(_ statusCode: Int) -> Bool { [500, 502, 503, 504].contains(statusCode) }

    // MARK: Validation

    /// The conditions that validate a stored response (section 4.3.1); `nil` if it has no validator.
    package static func conditions(for response: StoredResponse) -> HTTPHeaders? {
        guard response.part == nil else { return nil }
        var conditions = HTTPHeaders()
        if let tag = response.entityTag { conditions.append(name: "If-None-Match", value: tag.text) }
        if let date = response.lastModified { conditions.append(name: "If-Modified-Since", value: date) }
        return conditions.isEmpty ? nil : conditions
    }

    /// The fields that ask for the rest of a stored part; `nil` if it can't be completed.
    private static func completion(of response: StoredResponse) -> HTTPHeaders? {
        guard let part = response.part, part.offset == 0, part.length > 0, let validator = response.strongValidator else { return nil }
        return ["Range": "bytes=\(part.length)-", "If-Range": validator]
    }

    // MARK: Delivery

    /// What a request gets of a stored response; `nil` if that is not enough for it.
    private static func delivery(of response: StoredResponse, for request: CacheRequest) -> CacheDelivery? {
        if request.isConditional, response.statusCode == 200, isUnmodified(response, request) { return .notModified }
        guard let field = request.range, request.method == .get, response.statusCode == 200 else {
            return response.part == nil ? .whole : nil
        }
        if let condition = request.ifRange, !ranges(of: response, satisfy: condition) { return response.part == nil ? .whole : nil }
        return range(field, of: response)
    }

    /// Whether the conditions of a request are met by a stored response, so that a 304 answers it (section 4.3.2).
    private static func isUnmodified(_ response: StoredResponse, _ request: CacheRequest) -> Bool {
        if let list = request.ifNoneMatch {
            guard let tags = EntityTag.list(list) else { return true }
            return response.entityTag.map { own in tags.contains { own.matchesWeakly($0) } } ?? false
        }
        guard let since = request.ifModifiedSince.flatMap({ CacheDate.seconds(from: $0) }) else { return false }
        guard let modified = response.lastModified.flatMap({ CacheDate.seconds(from: $0) }) ?? response.date else { return false }
        return modified <= since
    }

    /// The fields of a stored response that may be delivered without a validation: not those that its `no-cache` names (section 5.2.2.4).
    package static func unvalidatedFields(of response: StoredResponse) -> HTTPHeaders {
        let hidden = Set(response.directives.noCacheFields.map { $0.lowercased() })
        guard !hidden.isEmpty else { return response.headers }
        return HTTPHeaders(response.headers.filter { !hidden.contains($0.name.lowercased()) })
    }

    private static func ranges(of response: StoredResponse, satisfy condition: String) -> Bool {
        guard let own = response.strongValidator else { return false }
        return own.hasSameBytes(as: condition.trimmingBlanks)
    }

    /// A single satisfiable range; anything else is for the host.
    private static func range(_ field: String, of response: StoredResponse) -> CacheDelivery? {
        // Ranges are those of the coded body (RFC 9110, section 14.1.2), and what is stored is decoded.
        guard let wanted = RequestedByteRange(field), !response.headers.contains(where: { $0.isNamed("Content-Encoding") }) else {
            return nil
        }
        guard let part = response.part else { return .range(wanted) }
        guard let total = part.total, let range = wanted.resolved(total: total), range.first >= part.offset, range.last < part.end else {
            return nil
        }
        return .range(wanted)
    }
}

/// The single range that a request wants (RFC 9110, section 14.1.2).
package struct RequestedByteRange: Sendable, Hashable {
    private let first: Int64?
    private let last: Int64?

    /// Parses `bytes=first-last`, `bytes=first-` or `bytes=-count`; `nil` for several ranges, other units and invalid text.
    package init?(_ field: String) {
        let text = field.trimmingBlanks
        guard text.lowercased().hasBytePrefix("bytes=") else { return nil }
        let bounds = text.dropFirstScalars(6).splitScalars(separator: "-", omittingEmptySubsequences: false).map(\.trimmingBlanks)
        guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy { $0.isASCIIDigit } }) else { return nil }
        first = Int64(bounds[0])
        last = Int64(bounds[1])
        guard bounds[0].isEmpty || first != nil, bounds[1].isEmpty || last != nil, first != nil || last != nil else { return nil }
        if let first, let last, last < first { return nil }
    }

    /// The range in a representation of a length; `nil` if it can't be satisfied.
    package func resolved(total: Int64) -> ByteRange? {
        guard let first else {
            guard let last, last > 0, total > 0 else { return nil }
            return ByteRange(first: max(total - last, 0), last: total - 1)
        }
        guard first < total else { return nil }
        return ByteRange(first: first, last: min(last ?? total - 1, total - 1))
    }
}
