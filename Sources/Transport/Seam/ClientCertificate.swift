// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

/// The certificate and private key with which a client authenticates in TLS (RFC 8446, section 4.4.2).
///
/// Sent to a host that requests a client certificate, if it is the origin (scheme, host and port) of the URL that the program has given the
/// request, or one of ``origins``. A redirect or another follow-up to another origin is sent without it, and so is a part of a segmented
/// download that comes from another origin than that of the first URL. A proxy never gets it.
///
/// Nor does a host that is refused by its chain, its name, ``TLSOptions/publicKeyHashes``, a trust policy or a closure: these decide before the
/// certificate is sent. Only a stapled response (``TLSOptions/requiresStapledResponse``) is verified afterwards.
///
/// The key never leaves the process. Descriptions contain neither key nor password.
public struct ClientCertificate: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        case data(Data)
        case file(String)

        fileprivate var path: String? { if case .file(let path) = self { path } else { nil } }

        /// The contents; `nil` for a file that can't be read.
        fileprivate func read() -> Source? {
            guard let path else { return self }
            return (try? Data(contentsOf: URL(fileURLWithPath: path))).map { .data($0) }
        }
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
        /// What the files contained when they were last read.
        private let known = Lock((versions: [FileVersion](), contents: Contents?.none))

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

        var hasFiles: Bool { certificate.path != nil || key?.path != nil }

        /// The same with what the files contain now, which are read again only after a change; `nil` if one is no regular file, or can't be
        /// read.
        fileprivate var current: Contents? {
            let paths = [certificate.path, key?.path].compactMap { $0 }
            let versions = paths.compactMap { FileVersion($0) }
            guard versions.count == paths.count else { return nil }
            if let contents = known.withLock({ $0.versions == versions ? $0.contents : nil }) { return contents }
            guard let certificate = certificate.read() else { return nil }
            var read: Source?
            if let key {
                read = key.read()
                guard read != nil else { return nil }
            }
            let contents = Contents(form, certificate, key: read, password: password)
            known.withLock { $0 = (versions, contents) }
            return contents
        }
    }

    private(set) var contents: Contents

    /// The certificate with what its files contain now, so that an exchange, the connections it may use and the responses it may share belong
    /// to one identity. The same if they can't be read, which libcurl then reports.
    package var read: ClientCertificate {
        var certificate = self
        if let current = contents.current { certificate.contents = current }
        return certificate
    }

    /// The only origins to which the certificate is sent, by requests to them and by redirects alike, such as `https://api.example.org` or
    /// `https://api.example.org:8443`; `nil`, the default, for the origin of each request.
    ///
    /// ```swift
    /// var certificate = ClientCertificate.pem(file: "client.pem", keyFile: "client.key")
    /// certificate.origins = ["https://api.example.org", "https://files.example.org"]
    /// configuration.tls.clientCertificate = certificate
    /// ```
    ///
    /// Names are compared as a whole: a subdomain is another host, and an internationalized name is written as `xn--…`. WebSockets, raw
    /// TLS connections and Redis count as `https` too. Anything but such an origin fails each transfer with
    /// ``TransferFailure/Kind/configuration``; in a certificate that answers a challenge it names no server.
    public var origins: [String]?

    /// Whether the certificate is sent to a URL's host, as far as ``origins`` say.
    package func isFor(_ url: String) -> Bool {
        guard let origins else { return true }
        guard let origin = HTTPOrigin(url: url) else { return false }
        return origins.contains { Self.origin($0) == origin }
    }

    /// Why the certificate can't be used; `nil` if it can.
    var invalidity: String? {
        guard let wrong = origins?.first(where: { Self.origin($0) == nil }) else { return nil }
        return "An origin of the client certificate is not of the form https://host or https://host:port: \(wrong.redactedURL)"
    }

    private static func origin(_ text: String) -> HTTPOrigin? {
        guard let origin = HTTPOrigin(url: text), origin.scheme == "https" else { return nil }
        let authority = text.utf8.dropFirst("https://".utf8.count)
        let isPlain = authority.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: ":"): true
            default: "-._[]".utf8.contains(byte)
            }
        }
        return isPlain ? origin : nil
    }

    /// A certificate in PEM, optionally followed by its intermediates, and its key in PEM.
    ///
    /// - Parameter password: the password of an encrypted key; `nil` for a plain one.
    public static func pem(_ certificate: Data, key: Data, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .data(certificate), key: .data(key), password: password))
    }

    /// A certificate in a PEM file, and its key in a PEM file, which may be the same.
    ///
    /// Read again after a change, before the next exchange, which neither uses connections nor shares responses of the earlier identity.
    ///
    /// - Parameters:
    ///   - file: the path of the certificate, optionally followed by its intermediates.
    ///   - keyFile: the path of the key.
    ///   - password: the password of an encrypted key; `nil`, the default, for a plain one.
    public static func pem(file: String, keyFile: String, password: String? = nil) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pem, .file(file), key: .file(keyFile), password: password))
    }

    /// Certificates and key in one PKCS #12 archive (RFC 7292).
    public static func pkcs12(_ archive: Data, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .data(archive), key: nil, password: password))
    }

    /// Certificates and key in one PKCS #12 file (RFC 7292). Read again after a change, as in ``pem(file:keyFile:password:)``.
    public static func pkcs12(file: String, password: String) -> ClientCertificate {
        ClientCertificate(contents: Contents(.pkcs12, .file(file), key: nil, password: password))
    }
}

// MARK: - Descriptions

extension ClientCertificate: LineConvertible, RedactedReflectable {
    /// The format, and the file's path if there is one.
    package var line: String {
        let form = contents.form == .pem ? "PEM" : "PKCS #12"
        if case .file(let path) = contents.certificate { return "ClientCertificate(\(form), \(path))" }
        return "ClientCertificate(\(form))"
    }
}
