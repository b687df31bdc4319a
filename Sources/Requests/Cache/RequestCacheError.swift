// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation

/// Why there is no cached answer for a request.
public enum RequestCacheError: Int, RequestError, Sendable, Hashable, CaseIterable {
    /// It is older than ``CachedRequest/cacheTimeInSeconds()``, or from the future.
    case expired = -1
    /// It is of another ``CachedRequest/cacheVersion()``.
    case versionMismatch = -2
    /// It was made with other ``CachedRequest/cacheSensitiveData()``.
    case sensitiveDataMismatch = -3
    /// Another version of the program has stored it: ``RequestsConfiguration/appVersion``.
    case appVersionMismatch = -4
    /// The request says by ``CachedRequest/cacheTimeInSeconds()`` that it is not cached.
    case invalidCacheTime = -5
    /// There is nothing, or nothing that says what it is.
    case invalidMetadata = -6
    /// What is there can't be read, or is not what the serializer wants.
    case invalidCacheData = -7
}

// MARK: - CustomNSError, LocalizedError

extension RequestCacheError: CustomNSError, LocalizedError {
    /// `curlew.request.caching`.
    public static var errorDomain: String { "curlew.request.caching" }

    /// −1 to −7: the raw value.
    public var errorCode: Int { rawValue }

    /// What is wrong, in a sentence.
    public var errorDescription: String? {
        switch self {
        case .expired: "Cache expired"
        case .versionMismatch: "Cache version mismatch"
        case .sensitiveDataMismatch: "Cache sensitive data mismatch"
        case .appVersionMismatch: "App version mismatch"
        case .invalidCacheTime: "Invalid cache time"
        case .invalidMetadata: "Invalid metadata. Cache may not exist"
        case .invalidCacheData: "Invalid cache data"
        }
    }

    /// The description.
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
}
