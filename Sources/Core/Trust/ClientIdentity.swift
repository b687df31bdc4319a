// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// The certificate and private key with which a client answers a challenge for its certificate.
///
/// ```swift
/// guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else { … }
/// completion(.useCredential, URLCredential(identity: .pkcs12(file: "client.p12", password: password)))
/// ```
///
/// Files are read when the challenge is answered. What is no certificate with its key fails the request with
/// ``TransferFailure/Kind/clientCertificate``. The key never leaves the process. Descriptions contain neither key nor password.
public struct ClientIdentity: Sendable, Hashable {
    let certificate: ClientCertificate

    /// A certificate in PEM, optionally followed by its intermediates, and its key in PEM.
    ///
    /// - Parameter password: the password of an encrypted key; `nil` for a plain one.
    public static func pem(_ certificate: Data, key: Data, password: String? = nil) -> ClientIdentity {
        ClientIdentity(certificate: .pem(certificate, key: key, password: password))
    }

    /// A certificate in a PEM file, and its key in a PEM file, which may be the same.
    ///
    /// - Parameters:
    ///   - file: the path of the certificate, optionally followed by its intermediates.
    ///   - keyFile: the path of the key.
    ///   - password: the password of an encrypted key; `nil`, the default, for a plain one.
    public static func pem(file: String, keyFile: String, password: String? = nil) -> ClientIdentity {
        ClientIdentity(certificate: .pem(file: file, keyFile: keyFile, password: password))
    }

    /// Certificates and key in one PKCS #12 archive (RFC 7292).
    public static func pkcs12(_ archive: Data, password: String) -> ClientIdentity {
        ClientIdentity(certificate: .pkcs12(archive, password: password))
    }

    /// Certificates and key in one PKCS #12 file (RFC 7292).
    public static func pkcs12(file: String, password: String) -> ClientIdentity {
        ClientIdentity(certificate: .pkcs12(file: file, password: password))
    }
}

// MARK: - Descriptions

extension ClientIdentity: LineConvertible, RedactedReflectable {
    /// The format, and the file's path if there is one.
    package var line: String { "ClientIdentity\(certificate.description.dropFirstScalars("ClientCertificate".utf8.count))" }
}

// MARK: - Credentials

/// What can be made of a ``ClientIdentity``: `URLCredential`. A protocol, because an initializer of a class can't return a subclass.
public protocol IdentityCredential {}

extension URLCredential: IdentityCredential {}

extension IdentityCredential where Self == URLCredential {
    /// Creates the credential that answers a challenge for the client's certificate. It has no other use: its user and its password are no
    /// server's. An archive does not contain it.
    public init(identity: ClientIdentity) {
        self = IdentityHolder(identity)
    }
}

extension URLCredential {
    /// The identity of a credential that has one.
    var identity: ClientIdentity? { (self as? IdentityHolder)?.heldIdentity }
}

private final class IdentityHolder: URLCredential, @unchecked Sendable {  // immutable
    let heldIdentity: ClientIdentity

    init(_ identity: ClientIdentity) {
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
