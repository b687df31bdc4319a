// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The URL or reference without the user name and password of its authority (RFC 3986, sections 3.2.1 and 4.1).
    ///
    /// For URLs that a peer has given, and for those whose credentials go out another way. In contrast to ``withoutUserInfo``, which is for
    /// messages, nothing is changed behind the authority.
    package var droppingUserInfo: String {
        guard let start = authorityStart else { return self }
        let authority = self[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard let at = authority.lastIndex(of: "@") else { return self }
        return String(self[..<start] + self[index(after: at)...])
    }

    /// Where the authority begins: behind the two slashes at the start of the reference, or behind its scheme.
    private var authorityStart: Index? {
        let scheme = prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "#" }
        var rest = self[scheme.endIndex...]
        if rest.first == ":" {
            rest.removeFirst()
        } else if !scheme.isEmpty {
            return nil
        }
        return rest.hasPrefix("//") ? rest.index(rest.startIndex, offsetBy: 2) : nil
    }
}
