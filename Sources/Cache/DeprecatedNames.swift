// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Names that a release had. Files of this name in other modules have theirs.

extension CacheStatus {
    /// What 0.9 had in place of `HTTPHeaders.cacheStatus`.
    @available(*, deprecated, message: "use the property cacheStatus of HTTPHeaders")
    public static func list(in headers: HTTPHeaders) -> [CacheStatus] { headers.cacheStatus }
}
