// SPDX-License-Identifier: Apache-2.0
import CCurlew

/// The Public Suffix List (publicsuffix.org) in the version of the system's libpsl.
package enum PublicSuffixList {
    /// Whether a domain, given in lower case, is a public suffix; `nil` without libpsl.
    package static func contains(_ domain: String) -> Bool? {
        switch ccurlew_is_public_suffix(domain) {
        case 0: false
        case 1: true
        default: nil
        }
    }
}
