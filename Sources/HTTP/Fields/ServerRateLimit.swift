// SPDX-License-Identifier: Apache-2.0

/// A limit that a server applies to the client's requests, and what is left of it: ``HTTPHeaders/rateLimits``.
///
/// Only a hint: the server may refuse a request before nothing remains, and `Retry-After` takes precedence.
public struct ServerRateLimit: Sendable, Hashable {
    /// The name of the policy; empty for the `X-RateLimit` fields, which have none.
    public var name: String
    /// How much is allowed in a window (`q`), in units of ``unit``; `nil` if it is not given.
    public var quota: Int?
    /// What is counted (`qu`): `requests` by default, `content-bytes`, `concurrent-requests`.
    public var unit = "requests"
    /// The length of the window (`w`), in whole seconds; `nil` if it is not given.
    public var window: Duration?
    /// How much is left (`r`), in units of ``unit``; `nil` if it is not given.
    public var remaining: Int?
    /// The time from the response until more is available (`t`), in whole seconds unless a server sends fractions; `nil` if it is not given.
    public var reset: Duration?
    /// The part of the server's clients or resources whose quota it is (`pk`); `nil` if it is not given.
    public var partitionKey: Data?

    /// Creates a limit of which only the name is known.
    public init(name: String) { self.name = name }
}

extension HTTPHeaders {
    /// The limits of the fields `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11), those of the same name and
    /// partition key as one; without these, the one limit of `X-RateLimit-Limit`, `-Remaining` and `-Reset`, or the same after
    /// `X-Rate-Limit-` or `RateLimit-`, as earlier drafts have it.
    ///
    /// `X-RateLimit-Reset` is the number of seconds until the reset below 1,000,000,000 (32 years), a time in seconds since 1970 below
    /// 100,000,000,000 (the year 5138), and one in milliseconds from there on. A time is relative to the response's `Date`, or to the current
    /// time without one; a time in the past is 0. A field that does not parse is ignored as a whole, a member without `q` or `r`, or with a
    /// negative one, alone.
    ///
    /// Setting the limits replaces `RateLimit-Policy` and `RateLimit`; one without a quota is not in the former, one without a remaining
    /// quota not in the latter. Neither is sent if a name or a unit is not printable ASCII.
    public var rateLimits: [ServerRateLimit] {
        get {
            let limits = structuredRateLimits
            guard limits.isEmpty else { return limits }
            for prefix in ["X-RateLimit-", "X-Rate-Limit-", "RateLimit-"] {
                if let limit = plainRateLimit(prefix) { return [limit] }
            }
            return []
        }
        set {
            set("RateLimit-Policy", to: try? StructuredFields.text(of: newValue.compactMap(\.policy)))
            set("RateLimit", to: try? StructuredFields.text(of: newValue.compactMap(\.state)))
        }
    }

    /// The limits of `RateLimit-Policy` and `RateLimit`.
    package var structuredRateLimits: [ServerRateLimit] {
        var limits = structuredList("RateLimit-Policy").compactMap { ServerRateLimit($0, requiring: \.quota) }
        var places = Dictionary(limits.enumerated().map { ($0.element.identity, $0.offset) }) { first, _ in first }
        for limit in structuredList("RateLimit").compactMap({ ServerRateLimit($0, requiring: \.remaining) }) {
            if let place = places.removeValue(forKey: limit.identity) {
                limits[place].remaining = limit.remaining
                limits[place].reset = limit.reset
            } else {
                limits.append(limit)
            }
        }
        return limits
    }

    private func plainRateLimit(_ prefix: String) -> ServerRateLimit? {
        var limit = ServerRateLimit(name: "")
        limit.quota = rateNumber(prefix + "Limit").map { Int($0) }
        limit.remaining = rateNumber(prefix + "Remaining").map { Int($0) }
        limit.reset = rateNumber(prefix + "Reset").map { .seconds(secondsUntilReset($0)) }
        return limit.quota == nil && limit.remaining == nil && limit.reset == nil ? nil : limit
    }

    /// The first number of a field, with a fraction or not; parameters are ignored, which earlier drafts have.
    private func rateNumber(_ name: String) -> Double? {
        guard case .item(let item)? = structuredList(name).first else { return nil }
        switch item.value {
        case .integer(let number) where number >= 0: return Double(number)
        case .decimal(let number) where number.thousandths >= 0: return number.value
        default: return nil
        }
    }

    private func secondsUntilReset(_ number: Double) -> Double {
        guard number >= 1e9 else { return number }
        let now = value(for: "Date").flatMap { HTTPDate.date(from: $0) } ?? Date()
        let wait = (number < 1e11 ? number : number / 1_000) - now.timeIntervalSince1970
        return wait > 0 ? wait : 0
    }
}

// MARK: - Members of the fields

extension ServerRateLimit {
    /// What a policy and its state have in common.
    fileprivate struct Identity: Hashable {
        let name: [UInt8]
        let partitionKey: Data?
    }

    fileprivate var identity: Identity { Identity(name: Array(name.utf8), partitionKey: partitionKey) }

    /// `nil` for a member without a name or the required number. Parameters that are unknown, negative or of another type are ignored.
    fileprivate init?(_ member: StructuredFields.Member, requiring number: KeyPath<ServerRateLimit, Int?>) {
        guard case .item(let item) = member else { return nil }
        switch item.value {
        case .string(let name), .token(let name): self.init(name: name)
        default: return nil
        }
        for parameter in item.parameters {
            switch (parameter.key, parameter.value) {
            case ("q", .integer(let count)) where count >= 0: quota = count
            case ("qu", .string(let name)): unit = name
            case ("w", .integer(let seconds)) where seconds > 0: window = .seconds(seconds)
            case ("r", .integer(let count)) where count >= 0: remaining = count
            case ("t", .integer(let seconds)) where seconds >= 0: reset = .seconds(seconds)
            case ("pk", .bytes(let key)): partitionKey = key
            default: break
            }
        }
        if self[keyPath: number] == nil { return nil }
    }

    /// The member of `RateLimit-Policy`; `nil` without a quota.
    fileprivate var policy: StructuredFields.Member? {
        guard let quota else { return nil }
        var parameters: StructuredFields.Parameters = ["q": .integer(quota)]
        if !unit.hasSameBytes(as: "requests") { parameters["qu"] = .string(unit) }
        parameters["w"] = window.map { .integer(Int(clamping: $0.components.seconds)) }
        return member(parameters)
    }

    /// The member of `RateLimit`; `nil` without a remaining quota.
    fileprivate var state: StructuredFields.Member? {
        guard let remaining else { return nil }
        var parameters: StructuredFields.Parameters = ["r": .integer(remaining)]
        parameters["t"] = reset.map { .integer(Int(clamping: $0.components.seconds)) }
        return member(parameters)
    }

    private func member(_ parameters: StructuredFields.Parameters) -> StructuredFields.Member {
        var parameters = parameters
        parameters["pk"] = partitionKey.map { .bytes($0) }
        return .item(.init(.string(name), parameters: parameters))
    }
}
