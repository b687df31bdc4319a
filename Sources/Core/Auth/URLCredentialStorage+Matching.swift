// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding

// On Linux two protection spaces that say the same are not equal (seen with Swift 6.3.1), so that the storage finds a credential only by the
// very object under which it was stored. Here spaces are compared by what they say.

extension URLCredentialStorage {
    /// The credential for the first of the spaces that has one: its default, or else the first by name.
    func credential(forAnyOf spaces: [URLProtectionSpace]) -> URLCredential? {
        let stored = allCredentials
        return spaces.lazy.compactMap { space in
            let matching = stored.filter { $0.key.says(what: space) }
            let defaults = matching.keys.compactMap { self.defaultCredential(for: $0) }
            return defaults.firstByName ?? matching.values.flatMap(\.values).firstByName
        }.first
    }

    /// Makes a credential the default for a space, under the object that the storage knows already, if it does.
    func setDefaultCredential(_ credential: URLCredential, forAnyLike space: URLProtectionSpace) {
        let known = allCredentials.keys.filter { $0.says(what: space) }
        for space in known.isEmpty ? [space] : Array(known) { setDefaultCredential(credential, for: space) }
    }
}

extension URLProtectionSpace {
    fileprivate func says(what other: URLProtectionSpace) -> Bool {
        host == other.host && port == other.port && `protocol` == other.`protocol` && realm == other.realm
            && authenticationMethod == other.authenticationMethod && isProxy() == other.isProxy()
    }
}

extension Sequence<URLCredential> {
    fileprivate var firstByName: URLCredential? { self.min { ($0.user ?? "") < ($1.user ?? "") } }
}
