// SPDX-License-Identifier: Apache-2.0
#if Redis
import CurlewCore

// Names that a release had. Files of this name in other modules have theirs.

extension RedisConfiguration {
    /// The name in 0.9 of ``maximumBackoff``.
    @available(*, deprecated, renamed: "maximumBackoff")
    public var longestBackoff: Duration {
        get { maximumBackoff }
        set { maximumBackoff = newValue }
    }

    /// The name in 0.9 of ``maximumResponseSize``.
    @available(*, deprecated, renamed: "maximumResponseSize")
    public var largestResponse: Int {
        get { maximumResponseSize }
        set { maximumResponseSize = newValue }
    }
}

extension FleetAuthenticator {
    /// The name in 0.9 of ``maximumWait``.
    @available(*, deprecated, renamed: "maximumWait")
    public var longestWait: Duration { maximumWait }

    /// Creates an authenticator with the names of 0.9.
    @available(*, deprecated, renamed: "init(_:client:name:lease:sealedWith:whenUnavailable:maximumWait:refusalTime:isRefusal:)")
    @_disfavoredOverload
    public convenience init(
        _ base: Base, client: RedisClient, name: String, lease: Duration = .seconds(10), sealedWith: SealingKeys? = nil,
        whenUnavailable: Unavailability = .refreshLocally, longestWait: Duration = .seconds(30), refusalTime: Duration = .seconds(30),
        isRefusal: (@Sendable (any Error) -> Bool)? = nil
    ) {
        self.init(
            base, client: client, name: name, lease: lease, sealedWith: sealedWith, whenUnavailable: whenUnavailable,
            maximumWait: longestWait, refusalTime: refusalTime, isRefusal: isRefusal)
    }
}
#endif
