// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport

#if Redis
import CurlewRedis

/// A process of a fleet, run by the tests of what its processes share.
@main
enum RedisProbe {
    static func main() async throws {
        exit(64)
    }
}
#else
@main
enum RedisProbe {
    static func main() {}
}
#endif
