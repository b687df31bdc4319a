// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTransport

extension TLSAuthority {
    /// Returns a certificate of the set.
    public func certificate(_ name: String) throws -> Certificate {
        guard let certificate = Certificate(pem: try data(name + ".pem")) else { throw TestError("\(name) is no certificate") }
        return certificate
    }
}
