// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The head of a stored response, with what the rules need of it (RFC 9111, section 3).
///
/// A value whose parts are computed once, when it is made or decoded, and shared by its copies: a response that is stored in memory is used
/// much more often than it is received.
package struct StoredResponse: Sendable {
    /// The stored part of a representation that is not stored whole (RFC 9111, section 3.3).
    package struct Part: Sendable, Hashable {
        /// The position of the first stored byte in the representation.
        package let offset: Int64
        /// The number of stored bytes, which are contiguous.
        package let length: Int64
        /// The length of the whole representation; `nil` if it is unknown.
        package let total: Int64?

        /// Creates a description of a stored part.
        package init(offset: Int64, length: Int64, total: Int64?) {
            self.offset = offset
            self.length = length
            self.total = total
        }

        /// The position after the last stored byte.
        package var end: Int64 { offset + length }
    }

    private final class Parts: Sendable {
        let url: String
        let partition: String
        let statusCode: Int
        let headers: HTTPHeaders
        let requestTime: Double
        let responseTime: Double
        let selection: SelectionKey
        let part: Part?
        let directives: CacheDirectives
        let date: Double?
        let initialAge: Double
        let lifetime: Double
        let entityTag: EntityTag?
        let lastModified: String?
        let noVarySearch: NoVarySearch?

        init(
            url: String, statusCode: Int, headers: HTTPHeaders, requestTime: Double, responseTime: Double, selection: SelectionKey,
            part: Part?, partition: String
        ) {
            self.url = url
            self.partition = partition
            self.statusCode = statusCode
            self.headers = headers
            self.requestTime = requestTime
            self.responseTime = responseTime
            self.selection = selection
            self.part = part
            let facts = FreshnessFacts(headers)
            directives = facts.directives
            date = facts.date
            initialAge = facts.initialAge(requestTime: requestTime, responseTime: responseTime)
            lifetime = facts.lifetime(statusCode: part == nil ? statusCode : 200, responseTime: responseTime)
            entityTag = facts.entityTag
            lastModified = facts.lastModified
            noVarySearch = facts.noVarySearch.flatMap { NoVarySearch($0) }
        }
    }

    private let parts: Parts

    /// Creates a stored response from its parts.
    ///
    /// - Parameters:
    ///   - url: the request's URL, without a fragment.
    ///   - statusCode: the status; 200 for a stored part.
    ///   - headers: the fields that are stored (``StorageRules/storable(_:)``).
    ///   - requestTime: when the request for it, or its last validation, was sent, in seconds since 1970.
    ///   - responseTime: when that response was received, in seconds since 1970.
    ///   - selection: which requests it may serve.
    ///   - part: what is stored of the body; `nil` if all is.
    ///   - partition: the request's; only requests of the same one are served.
    package init(
        url: String, statusCode: Int, headers: HTTPHeaders, requestTime: Double, responseTime: Double, selection: SelectionKey,
        part: Part? = nil, partition: String = ""
    ) {
        parts = Parts(
            url: url, statusCode: statusCode, headers: headers, requestTime: requestTime, responseTime: responseTime, selection: selection,
            part: part, partition: partition)
    }

    /// The request's URL, without a fragment.
    package var url: String { parts.url }
    /// The partition of the requests that it may serve.
    package var partition: String { parts.partition }
    /// The status code; 200 for a stored part of a 200 response or of a 206.
    package var statusCode: Int { parts.statusCode }
    /// The stored fields.
    package var headers: HTTPHeaders { parts.headers }
    /// When the request, or its last validation, was sent, in seconds since 1970.
    package var requestTime: Double { parts.requestTime }
    /// When the response, or the last 304, was received, in seconds since 1970.
    package var responseTime: Double { parts.responseTime }
    /// Which requests the response may serve.
    package var selection: SelectionKey { parts.selection }
    /// What is stored of the body; `nil` if all of it is.
    package var part: Part? { parts.part }
    /// The directives of the response.
    package var directives: CacheDirectives { parts.directives }
    /// The value of `Date` in seconds since 1970; `nil` without a valid one.
    package var date: Double? { parts.date }
    /// The freshness lifetime in seconds (RFC 9111, section 4.2.1).
    package var lifetime: Double { parts.lifetime }
    /// The entity tag; `nil` without a valid one.
    package var entityTag: EntityTag? { parts.entityTag }
    /// The value of `Last-Modified`; `nil` if there is none or it is no date.
    package var lastModified: String? { parts.lastModified }
    /// Which parts of the query do not distinguish the response from others; `nil` if all do.
    package var noVarySearch: NoVarySearch? { parts.noVarySearch }

    /// The age at a time, in seconds (RFC 9111, section 4.2.3).
    package func age(at now: Double) -> Double { parts.initialAge + max(now - parts.responseTime, 0) }

    /// The seconds that are left of the freshness lifetime; negative or 0 for a stale response.
    package func remaining(at now: Double) -> Double { parts.lifetime - age(at: now) }

    /// Whether it can be validated with the host.
    package var hasValidator: Bool { entityTag != nil || lastModified != nil }

    /// A validator under which parts of the body may be combined (RFC 9110, section 8.8.1): a strong entity tag, or a modification date
    /// that is at least a minute older than the response.
    package var strongValidator: String? {
        if let entityTag { return entityTag.isWeak ? nil : entityTag.text }
        guard let lastModified, let date, let modified = CacheDate.seconds(from: lastModified), date - modified >= 60 else { return nil }
        return lastModified
    }

    /// A copy with some parts replaced.
    package func with(
        headers: HTTPHeaders? = nil, requestTime: Double? = nil, responseTime: Double? = nil, part: Part?? = nil
    ) -> StoredResponse {
        StoredResponse(
            url: url, statusCode: statusCode, headers: headers ?? self.headers, requestTime: requestTime ?? self.requestTime,
            responseTime: responseTime ?? self.responseTime, selection: selection, part: part ?? self.part,
            partition: partition)
    }
}

extension StoredResponse: Hashable {
    package static func == (left: StoredResponse, right: StoredResponse) -> Bool {
        left.parts === right.parts
            || left.url == right.url && left.statusCode == right.statusCode && left.headers == right.headers
                && left.requestTime == right.requestTime && left.responseTime == right.responseTime && left.selection == right.selection
                && left.partition == right.partition
                && left.part == right.part
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(responseTime)
    }
}
