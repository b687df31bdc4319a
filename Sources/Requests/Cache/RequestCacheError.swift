// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

/// The reason why no cached response is available for a request.
public enum RequestCacheError: Int, RequestError, Sendable, Hashable, CaseIterable {
    /// The response is older than ``CachedRequest/cacheTimeInSeconds()``, or its date is in the future.
    case expired = -1
    /// The response has another ``CachedRequest/cacheVersion()``.
    case versionMismatch = -2
    /// The response was stored with other ``CachedRequest/cacheSensitiveData()``.
    case sensitiveDataMismatch = -3
    /// The response was stored by another version of the program: ``RequestsConfiguration/appVersion``.
    case appVersionMismatch = -4
    /// Caching is disabled for the request: ``CachedRequest/cacheTimeInSeconds()`` is negative.
    case invalidCacheTime = -5
    /// There is no cached response, none can be for this request (``CachedRequest``), or its metadata cannot be read.
    case invalidMetadata = -6
    /// The cached response cannot be read, or the serializer cannot parse it.
    case invalidCacheData = -7
}

// MARK: - CustomNSError, LocalizedError

extension RequestCacheError: CustomNSError, LocalizedError {
    /// `curlew.request.caching`.
    public static var errorDomain: String { "curlew.request.caching" }

    /// −1 to −7: the raw value.
    public var errorCode: Int { rawValue }

    /// Names the check that failed.
    public var errorDescription: String? {
        switch self {
        case .expired: "The cached response is older than cacheTimeInSeconds(), or its date is in the future."
        case .versionMismatch: "The cached response was stored with another cacheVersion()."
        case .sensitiveDataMismatch: "The cached response was stored with other cacheSensitiveData()."
        case .appVersionMismatch: "The cached response was stored by another version of the program."
        case .invalidCacheTime: "The request does not use the cache: cacheTimeInSeconds() is negative."
        case .invalidMetadata: "No response is cached for the request, or its metadata cannot be read."
        case .invalidCacheData: "The cached response cannot be read or parsed."
        }
    }

    /// The description.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
}
