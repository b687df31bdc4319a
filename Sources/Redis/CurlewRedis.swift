// SPDX-License-Identifier: Apache-2.0
#if Redis
@_exported import CurlewCore
#else
/// Needs the trait `Redis`, and libhiredis.
@available(*, unavailable, message: "CurlewRedis needs the trait Redis: .package(…, traits: [\"Redis\"])")
public final class RedisClient: Sendable {}
#endif
