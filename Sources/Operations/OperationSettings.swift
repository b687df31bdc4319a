// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// The user's settings of an operation, which its copies share.
struct OperationSettings: @unchecked Sendable {  // its Foundation objects are immutable or thread-safe
    var session: OperationSession = .shared
    var credential: URLCredential?
    var shouldUseCredentialStorage = true
    var securityPolicy = SecurityPolicy()
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
    var completesBeforeDependents = false
    var userInfo: [String: any Sendable] = [:]
    var runLoopModes: Set<RunLoop.Mode> = [.common]
    var uploadProgress: URLConnectionOperation.ProgressBlock?
    var downloadProgress: URLConnectionOperation.ProgressBlock?
    var redirectResponse: URLConnectionOperation.RedirectBlock?
    var cacheResponse: URLConnectionOperation.CacheBlock?
    var challenge: URLConnectionOperation.ChallengeBlock?
}
