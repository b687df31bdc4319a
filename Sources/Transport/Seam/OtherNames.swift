// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension TLSOptions {
    /// NIOSSL's name.
    @available(*, unavailable, renamed: "minimumVersion")
    public var minimumTLSVersion: Version {
        get { minimumVersion }
        set {}
    }

    /// NIOSSL's name.
    @available(*, unavailable, message: "use verifiesCertificateChain and verifiesHostName, or verifiesServer for both")
    public var certificateVerification: Bool? {
        get { verifiesServer }
        set {}
    }

    /// NIOSSL's name.
    @available(*, unavailable, message: "use certificateAuthorities (PEM) or certificateAuthorityFile")
    public var trustRoots: Data? {
        get { certificateAuthorities }
        set {}
    }
}

extension TLSOptions.Version {
    /// NIOSSL's name.
    @available(*, unavailable, renamed: "v1_2")
    public static var tlsv12: Self { .v1_2 }

    /// NIOSSL's name.
    @available(*, unavailable, renamed: "v1_3")
    public static var tlsv13: Self { .v1_3 }
}
