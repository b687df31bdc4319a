// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// What can be made of a ``ClientCertificate``: `URLCredential`. A protocol, because an initializer of a class can't return a subclass.
public protocol IdentityCredential {}

extension URLCredential: IdentityCredential {}

extension IdentityCredential where Self == URLCredential {
    /// Creates the credential that answers a challenge for the client's certificate. It has no other use: its user and its password are no
    /// server's. An archive does not contain it.
    ///
    /// ```swift
    /// guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else { … }
    /// completion(.useCredential, URLCredential(identity: .pkcs12(file: "client.p12", password: password)))
    /// ```
    ///
    /// Files are read when the challenge is answered. What is no certificate with its key fails the request with
    /// ``TransferFailure/Kind/clientCertificate``. A certificate whose ``ClientCertificate/origins`` do not name the server of the challenge is
    /// not sent to it: the connection is made without one.
    public init(identity: ClientCertificate) {
        self = IdentityHolder(identity)
    }
}

extension URLCredential {
    /// The certificate of a credential that has one.
    var identity: ClientCertificate? { (self as? IdentityHolder)?.heldIdentity }
}

private final class IdentityHolder: URLCredential, @unchecked Sendable {  // immutable
    let heldIdentity: ClientCertificate

    init(_ identity: ClientCertificate) {
        heldIdentity = identity
        super.init(user: Self.marker, password: "", persistence: .none)
    }

    /// Always `nil`: a private key does not belong into an archive.
    required init?(coder: NSCoder) { nil }

    /// Random, so that it is no user's name.
    private static let marker = "curlew.client-identity.\(UUID().uuidString)"

    override func copy(with zone: NSZone? = nil) -> Any { self }

    override func isEqual(_ object: Any?) -> Bool { (object as? IdentityHolder)?.heldIdentity == heldIdentity }

    override var hash: Int { heldIdentity.hashValue }
}
