// SPDX-License-Identifier: Apache-2.0

/// Digests of a message's content or of a representation: the fields `Content-Digest` and `Repr-Digest` (RFC 9530), as
/// ``HTTPHeaders/contentDigest`` and ``HTTPHeaders/reprDigest``.
///
/// SHA-256 and SHA-512 only: other algorithms are ignored, as those that the RFC registers are insecure (section 5).
public struct ContentDigest: Sendable, Hashable {
    /// An algorithm of digests. Later versions may add algorithms, so a `switch` needs a `default`.
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// SHA-256.
        case sha256 = "sha-256"
        /// SHA-512.
        case sha512 = "sha-512"

        fileprivate var size: Int { self == .sha256 ? 32 : 64 }

        fileprivate func digest(of data: Data) -> Data {
            data.withUnsafeBytes {
                Data(self == .sha256 ? LargeDigest<UInt32>.digest(of: $0) : LargeDigest<UInt64>.digest(of: $0))
            }
        }
    }

    /// The digests by their algorithms: at least one.
    public let digests: [Algorithm: Data]

    /// Computes digests of data: by SHA-256 by default, and for an empty list.
    public init(of data: Data, by algorithms: Set<Algorithm> = [.sha256]) {
        let algorithms = algorithms.isEmpty ? [.sha256] : algorithms
        digests = Dictionary(uniqueKeysWithValues: algorithms.map { ($0, $0.digest(of: data)) })
    }

    /// The digest by SHA-256 that was computed elsewhere.
    package init(sha256 digest: [UInt8]) { digests = [.sha256: Data(digest)] }

    /// `nil` without a digest of a known algorithm and of its size.
    fileprivate init?(_ dictionary: StructuredFields.Dictionary) {
        var digests: [Algorithm: Data] = [:]
        for algorithm in Algorithm.allCases {
            guard case .item(let item)? = dictionary[algorithm.rawValue], case .bytes(let digest) = item.value,
                digest.count == algorithm.size
            else { continue }
            digests[algorithm] = digest
        }
        guard !digests.isEmpty else { return nil }
        self.digests = digests
    }

    /// Whether all digests are those of the data.
    public func matches(_ data: Data) -> Bool {
        digests.allSatisfy { $0.key.digest(of: data) == $0.value }
    }

    fileprivate var dictionary: StructuredFields.Dictionary {
        var dictionary: StructuredFields.Dictionary = [:]
        for algorithm in Algorithm.allCases { dictionary[algorithm.rawValue] = digests[algorithm].map { .item(.init(.bytes($0))) } }
        return dictionary
    }
}

extension HTTPHeaders {
    /// `Content-Digest` (RFC 9530, section 2): digests of the message's content. `nil` without one that is known, or if the field does not
    /// parse.
    ///
    /// Of the bytes that were transferred: of the part in a 206, and in their content coding. Curlew decodes bodies, so that only the body
    /// of a response without `Content-Encoding` matches.
    public var contentDigest: ContentDigest? {
        get { digest("Content-Digest") }
        set { setDigest("Content-Digest", newValue) }
    }

    /// `Repr-Digest` (RFC 9530, section 3): digests of the whole representation, also of a 206 or the response to a HEAD. `nil` without one
    /// that is known, or if the field does not parse.
    ///
    /// Of the bytes in their content coding, as ``contentDigest``.
    public var reprDigest: ContentDigest? {
        get { digest("Repr-Digest") }
        set { setDigest("Repr-Digest", newValue) }
    }

    private func digest(_ name: String) -> ContentDigest? {
        value(for: name).flatMap { try? StructuredFields.dictionary(from: $0) }.flatMap { ContentDigest($0) }
    }

    private mutating func setDigest(_ name: String, _ digest: ContentDigest?) {
        set(name, to: digest.flatMap { try? StructuredFields.text(of: $0.dictionary) })
    }
}
