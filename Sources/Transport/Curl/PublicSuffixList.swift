// SPDX-License-Identifier: Apache-2.0
import CCurlew

/// The list at publicsuffix.org, as the system's libpsl has it.
package enum PublicSuffixList {
    /// Whether a domain, in lower case, is on the list; `nil` where there is no libpsl.
    package static func contains(_ domain: String) -> Bool? {
        switch ccurlew_is_public_suffix(domain) {
        case 0: false
        case 1: true
        default: nil
        }
    }
}
