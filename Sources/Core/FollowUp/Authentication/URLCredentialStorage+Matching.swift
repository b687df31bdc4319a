// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

// On Linux protection spaces are compared by identity (Swift 6.3.1), so that the storage finds a credential only by the object under which
// it was stored. Here they are compared by their properties.

extension URLCredentialStorage {
    /// Returns the credential for the first of the spaces that has one: its default, or else the first by user name.
    func credential(forAnyOf spaces: [URLProtectionSpace]) -> URLCredential? {
        let stored = allCredentials
        return spaces.lazy.compactMap { space in
            let matching = stored.filter { $0.key.matches(space) }
            let defaults = matching.keys.compactMap { self.defaultCredential(for: $0) }
            return defaults.firstByUser ?? matching.values.flatMap(\.values).firstByUser
        }.first
    }

    /// Sets the default credential for a space, under the storage's own object for that space if it has one.
    func setDefaultCredential(_ credential: URLCredential, forAnyLike space: URLProtectionSpace) {
        for space in spaces(like: space) { setDefaultCredential(credential, for: space) }
    }

    /// The storage's own objects for a space; the space itself if it has none.
    package func spaces(like space: URLProtectionSpace) -> [URLProtectionSpace] {
        let known = allCredentials.keys.filter { $0.matches(space) }
        return known.isEmpty ? [space] : Array(known)
    }
}

extension URLProtectionSpace {
    fileprivate func matches(_ other: URLProtectionSpace) -> Bool {
        host.comparableHost == other.host.comparableHost && port == other.port && `protocol` == other.`protocol` && realm == other.realm
            && authenticationMethod == other.authenticationMethod && isProxy() == other.isProxy()
    }
}

extension Sequence<URLCredential> {
    fileprivate var firstByUser: URLCredential? { self.min { ($0.user ?? "") < ($1.user ?? "") } }
}

// MARK: - Session

extension Session {
    /// The stored credential for a challenge.
    func storedCredential(for challenge: AnswerableChallenge, of origin: HTTPOrigin) -> URLCredential? {
        configuration.credentialStorage?.credential(forAnyOf: origin.spaces(of: challenge))
    }

    /// Stores an accepted credential, for requests that have none. Not on the event loop's thread, as it posts Foundation's notification.
    func store(_ authentication: TaskAuthentication) {
        guard let storage = configuration.credentialStorage, authentication.credential.persistence != .none else { return }
        storage.setDefaultCredential(authentication.credential, forAnyLike: authentication.origin.space(of: authentication.challenge))
    }
}
