// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// What a client shows to a host that wants to know who it is (RFC 8446, section 4.4.2): a certificate, and the key to it.
///
/// Shown to every host of the session that asks for one; the key stays here. Neither key nor password appear in descriptions.
public struct ClientCertificate: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        case data(Data)
        case file(String)
    }

    enum Form: Sendable, Hashable {
        case pem
        case pkcs12
    }

    /// Behind one reference: options are copied for each transfer.
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

    /// A certificate in PEM, which may be followed by those between it and its root, and its key in PEM.
    ///
    /// - Parameter password: that of an encrypted key; `nil` for a plain one.
    public static func pem(_ certificate: Data, key: Data, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .data(certificate), key: .data(key), password: password))
    }

    /// A certificate in a PEM file, and its key in one, which may be the same. Read anew for each connection.
    public static func pem(file: String, keyFile: String, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .file(file), key: .file(keyFile), password: password))
    }

    /// Certificates and key in one PKCS #12 archive (RFC 7292).
    public static func pkcs12(_ archive: Data, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .data(archive), key: nil, password: password))
    }

    /// Certificates and key in one PKCS #12 file (RFC 7292). Read anew for each connection.
    public static func pkcs12(file: String, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .file(file), key: nil, password: password))
    }
}

// MARK: - Descriptions

extension ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The form, and the file if it is one.
    public var description: String {
        let form = contents.form == .pem ? "PEM" : "PKCS #12"
        if case .file(let path) = contents.certificate { return "ClientCertificate(\(form), \(path))" }
        return "ClientCertificate(\(form))"
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Nothing to look into: what is inside is secret.
    public var customMirror: Mirror { .redacted(self) }
}
