// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The certificate and private key with which a client authenticates in TLS (RFC 8446, section 4.4.2).
///
/// Sent to every host of the session that requests a client certificate; the key never leaves the process. Descriptions contain neither key
/// nor password.
public struct ClientCertificate: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        case data(Data)
        case file(String)
    }

    enum Form: Sendable, Hashable {
        case pem
        case pkcs12
    }

    /// Behind one reference, because options are copied for each transfer.
    final class Contents: Sendable, Hashable {
        let form: Form
        let certificate: Source
        let key: Source?
        let password: String?

        init(_ form: Form, _ certificate: Source, key: Source?, password: String?) {
            self.form = form
            self.certificate = certificate
            self.key = key
            self.password = password
        }

        static func == (lhs: Contents, rhs: Contents) -> Bool {
            lhs === rhs
                || lhs.form == rhs.form && lhs.certificate == rhs.certificate && lhs.key == rhs.key && lhs.password == rhs.password
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(certificate)
        }
    }

    let contents: Contents

    /// A certificate in PEM, optionally followed by its intermediates, and its key in PEM.
    ///
    /// - Parameter password: the password of an encrypted key; `nil` for a plain one.
    public static func pem(_ certificate: Data, key: Data, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .data(certificate), key: .data(key), password: password))
    }

    /// A certificate in a PEM file, and its key in a PEM file, which may be the same. Read again for each connection.
    public static func pem(file: String, keyFile: String, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .file(file), key: .file(keyFile), password: password))
    }

    /// Certificates and key in one PKCS #12 archive (RFC 7292).
    public static func pkcs12(_ archive: Data, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .data(archive), key: nil, password: password))
    }

    /// Certificates and key in one PKCS #12 file (RFC 7292). Read again for each connection.
    public static func pkcs12(file: String, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .file(file), key: nil, password: password))
    }
}

// MARK: - Descriptions

extension ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The format, and the file's path if there is one.
    public var description: String {
        let form = contents.form == .pem ? "PEM" : "PKCS #12"
        if case .file(let path) = contents.certificate { return "ClientCertificate(\(form), \(path))" }
        return "ClientCertificate(\(form))"
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Empty, because the contents are secret.
    public var customMirror: Mirror { .redacted(self) }
}
