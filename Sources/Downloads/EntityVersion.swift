// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The version of a resource whose parts are received: its length and validators (RFC 9110, section 8.8).
struct EntityVersion: Codable, Equatable, Sendable {
    /// What a response says about being of this version.
    enum Match: Equatable {
        case same
        /// Nothing contradicts that it is the same, but nothing says so either.
        case unknown
        case different
    }

    let total: Int64
    /// A strong entity tag.
    let tag: String?
    /// A `Last-Modified` that can be relied on.
    let date: String?
    /// The digests of the whole (RFC 9530, section 3), by the algorithm's name, in Base64.
    let digests: [String: String]

    /// Reads the version of a response.
    init(_ head: ResponseHead, total: Int64) {
        self.total = total
        tag = head.strongTag
        date = head.value(for: "ETag") == nil ? head.strongDate : nil
        digests = head.headers.reprDigest?.named.mapValues { $0.base64EncodedString() } ?? [:]
    }

    /// What is sent in `If-Range` (RFC 9110, section 13.1.5).
    var validator: String? { tag ?? date }

    /// Whether it can be decided that parts of different responses belong together.
    var isReliable: Bool { validator != nil || !digests.isEmpty }

    /// Whether fields that were stored can be sent.
    var isValid: Bool {
        total >= 0 && [tag, date].allSatisfy { $0.map { HTTPHeader(name: "If-Range", value: $0).isValid } ?? true }
    }

    /// Compares a partial response.
    ///
    /// - Parameters:
    ///   - isOwn: whether the server is the one from which this version is: entity tags of another one mean something else.
    ///   - condition: the validator of this version at that server, sent in `If-Range`; `nil` if the request had none. The response has to
    ///     repeat it (RFC 9110, section 15.3.7): a server that ignores the condition sends a range of any version.
    func match(_ head: ResponseHead, total: Int64?, isOwn: Bool, condition: String?) -> Match {
        if let total, total != self.total { return .different }
        let other = EntityVersion(head, total: self.total)
        var isSame = false
        for (algorithm, digest) in other.digests {
            guard let known = digests[algorithm] else { continue }
            if known != digest { return .different }
            isSame = true
        }
        let hasDigest = isSame
        if let tag {
            if let known = other.tag, known.hasSameBytes(as: tag) { return .same }
            // Also if the tag has become a weak one.
            if isOwn, head.value(for: "ETag") != nil { return .different }
        }
        // A mirror has tags of its own. If it answers with another tag than `If-Range` had, it has another version, even of the same date,
        // unless a digest has matched.
        if let condition, condition.hasBytePrefix("\""), !hasDigest, let known = head.value(for: "ETag"),
            !known.hasSameBytes(as: condition)
        {
            return .different
        }
        if let known = head.value(for: "Last-Modified"), let date {
            if known != date, isOwn { return .different }
            isSame = isSame || known == date
        }
        if let condition {
            isSame = isSame || ["ETag", "Last-Modified"].contains { head.value(for: $0)?.hasSameBytes(as: condition) == true }
        }
        return isSame ? .same : .unknown
    }
}

extension ContentDigest {
    /// The digests by the names of their algorithms.
    var named: [String: Data] { Dictionary(uniqueKeysWithValues: digests.map { ($0.key.rawValue, $0.value) }) }
}

/// Digests of a message, computed together.
struct DigestCheck: ~Copyable {
    private let expected: [String: Data]
    private var short: LargeDigest<UInt32>?
    private var long: LargeDigest<UInt64>?

    init(_ expected: [String: Data]) {
        self.expected = expected
        short = expected["sha-256"] == nil ? nil : LargeDigest()
        long = expected["sha-512"] == nil ? nil : LargeDigest()
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        short?.update(bytes)
        long?.update(bytes)
    }

    /// Ends the message, and returns the first digest that differs; `nil` if all are as expected.
    mutating func mismatch() -> (algorithm: String, expected: Data, actual: Data)? {
        let actual = [("sha-256", short.take()?.finish()), ("sha-512", long.take()?.finish())]
        for (algorithm, digest) in actual {
            guard let digest, let expected = expected[algorithm], Data(digest) != expected else { continue }
            return (algorithm, expected, Data(digest))
        }
        return nil
    }
}
