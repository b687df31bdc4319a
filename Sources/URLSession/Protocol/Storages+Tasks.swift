// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewHTTP
import CurlewURLLoading
import Dispatch

// The methods of Foundation's storages that have a task in their signature, for the tasks of this module. They find what its sessions have
// stored, and sessions find what they store. As they may wait for a disk, what has a completion handler works on another thread, which calls
// the handler. Subclasses can't override them: they are not methods of the classes.

extension URLCache {
    /// Stores a response for the current request of a task.
    public func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let url = dataTask.currentRequest?.url { store(cachedResponse, for: url) }
    }

    /// Calls `completionHandler` with the stored response for the current request of a task, or `nil`.
    @preconcurrency public func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let url = dataTask.currentRequest?.url
        later { completionHandler(url.flatMap { self.response(storedFor: $0) }) }
    }

    /// The stored response for the current request of a task, or `nil`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { continuation in
            getCachedResponse(for: dataTask) { continuation.resume(returning: $0) }
        }
    }

    /// Removes the stored response for the current request of a task.
    public func removeCachedResponse(for dataTask: URLSessionDataTask) {
        if let url = dataTask.currentRequest?.url { removeResponse(storedFor: url) }
    }
}

/// Protection spaces with equal properties are the same here; for Foundation's own methods on Linux only the same object is.
extension URLCredentialStorage {
    /// Calls `completionHandler` with the credentials for a space by user name, or `nil` without any. The task has no effect, here and below.
    @preconcurrency public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        let space = Shown(protectionSpace)
        later {
            let found = self.spaces(like: space.value).compactMap { self.credentials(for: $0) }
            completionHandler(found.isEmpty ? nil : found.reduce(into: [:]) { $0.merge($1) { first, _ in first } })
        }
    }

    /// The credentials for a space by user name, or `nil` without any.
    public func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]? {
        await withCheckedContinuation { continuation in
            getCredentials(for: protectionSpace, task: task) { continuation.resume(returning: $0) }
        }
    }

    /// Stores a credential for a space, unless its persistence is `none`.
    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        for space in spaces(like: protectionSpace) { set(credential, for: space) }
    }

    /// Removes a credential for a space; one with the persistence `synchronizable` with the option
    /// `NSURLCredentialStorageRemoveSynchronizableCredentials` only.
    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:], task: URLSessionTask
    ) {
        let key = NSURLCredentialStorageRemoveSynchronizableCredentials
        let given = options?[key]
        let flag = (given as? NSNumber) ?? (given as? Bool).map { NSNumber(value: $0) }
        for space in spaces(like: protectionSpace) { remove(credential, for: space, options: flag.map { [key: $0] }) }
    }

    /// Calls `completionHandler` with the default credential for a space, or `nil`.
    @preconcurrency public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        let space = Shown(space)
        later { completionHandler(self.spaces(like: space.value).lazy.compactMap { self.defaultCredential(for: $0) }.first) }
    }

    /// The default credential for a space, or `nil`.
    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        await withCheckedContinuation { continuation in
            getDefaultCredential(for: space, task: task) { continuation.resume(returning: $0) }
        }
    }

    /// Makes a credential the default for a space, and stores it, unless its persistence is `none`.
    public func setDefaultCredential(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        for space in spaces(like: protectionSpace) { setDefaultCredential(credential, for: space) }
    }
}

extension HTTPCookieStorage {
    /// Stores cookies of the host of a task's current request, as the storage's `cookieAcceptPolicy` allows; those of other hosts are dropped
    /// (RFC 6265, section 5.3).
    public func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        if let request = task.currentRequest { store(cookies, of: request) }
    }

    /// Calls `completionHandler` with the cookies that are sent with a task's current request, in their order; with `nil` if its URL is not
    /// one of HTTP.
    @preconcurrency public func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
        let request = task.currentRequest
        later { completionHandler(request.flatMap { self.cookies(sentWith: $0) }) }
    }

    /// The cookies that are sent with a task's current request, in their order; `nil` if its URL is not one of HTTP.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await withCheckedContinuation { continuation in
            getCookiesFor(task) { continuation.resume(returning: $0) }
        }
    }
}

private func later(_ body: @escaping @Sendable () -> Void) { DispatchQueue.global(qos: .utility).async(execute: body) }
