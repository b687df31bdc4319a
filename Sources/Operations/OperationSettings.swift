// SPDX-License-Identifier: Apache-2.0
import Dispatch

/// What users set on an operation, and what its copies keep.
struct OperationSettings: @unchecked Sendable {  // what of Foundation's is in it is immutable or made for many threads
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
