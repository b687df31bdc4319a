// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// Certificates of authorities, from a file, bytes or text.
///
/// ```swift
/// configuration.tls.additionalAuthorities = try CertificateAuthorities(contentsOf: URL(fileURLWithPath: "/etc/company/root.pem"))
/// ```
///
/// Read and checked when the value is created, so that a wrong file is an error at once and not at the first connection. A value to store and
/// to share; copies share their contents.
public struct CertificateAuthorities: Sendable, ComparedByKey {
    private final class Contents: Sendable {
        let certificates: [Certificate]
        let pem: Data

        init(_ certificates: [Certificate]) {
            self.certificates = certificates
            pem = certificates.reduce(into: Data()) { $0 += $1.pem }
        }
    }

    private let contents: Contents

    /// Reads certificates in PEM (RFC 7468, section 5), or one in DER. Text around the certificates of PEM is ignored.
    ///
    /// - Throws: ``CurlewError/transferFailed(_:)`` with ``TransferFailure/Kind/configuration`` if there is no certificate in it.
    public init(_ data: Data) throws(CurlewError) {
        try self.init(data, from: "")
    }

    /// Reads certificates in PEM from a text; otherwise as ``init(_:)``.
    public init(pem text: String) throws(CurlewError) {
        try self.init(Data(text.utf8), from: "")
    }

    /// Reads certificates from a local file, in PEM or DER. Blocks the calling thread for as long as reading takes.
    ///
    /// - Throws: ``CurlewError/transferFailed(_:)`` with ``TransferFailure/Kind/configuration`` if the URL is not a file's, the file can't
    ///   be read, or there is no certificate in it; its message has the reason, its URL the file.
    public init(contentsOf url: URL) throws(CurlewError) {
        guard url.isFileURL else { throw Self.failure("The authorities' URL is not a file's", url.absoluteString) }
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch {
            throw Self.failure("The file of authorities can't be read: \(FileError.text(error, of: url.path))", url.absoluteString)
        }
        try self.init(data, from: url.absoluteString)
    }

    private init(_ data: Data, from url: String) throws(CurlewError) {
        var certificates = Certificate.all(inPEM: data)
        if certificates.isEmpty, let single = Certificate(der: data) { certificates = [single] }
        guard !certificates.isEmpty else { throw Self.failure("The authorities' \(data.count) bytes contain no certificate", url) }
        contents = Contents(certificates)
    }

    private static func failure(_ message: String, _ url: String) -> CurlewError {
        .transferFailed(TransferFailure(kind: .configuration, url: url, phase: .preparing, message: message))
    }

    /// The certificates, in their order.
    public var certificates: [Certificate] { contents.certificates }

    /// The certificates in PEM, for ``TLSOptions/certificateAuthorities``.
    public var pem: Data { contents.pem }

    /// The certificates in their order.
    package var comparisonKey: [Certificate] { contents.certificates }
}

// MARK: - For libcurl

/// Where libcurl reads the authorities.
enum AuthoritySource {
    /// The system's defaults.
    case system
    /// The system's directory, and others in PEM.
    case systemDirectory(String, Data)
    /// These in PEM, and no others.
    case data(Data)
    /// A file's in PEM, and no others.
    case file(String)
    /// A file that has to be combined with others can't be read, for this reason.
    case unreadable(String)
}

extension TLSOptions {
    /// The file of authorities that the environment names; `nil` for none.
    var environmentAuthorityFile: String? { usesEnvironment ? ccurlew_environment_ca_file().map { String(cString: $0) } : nil }
    /// The directory of authorities that the environment names; `nil` for none.
    var environmentAuthorityDirectory: String? { usesEnvironment ? ccurlew_environment_ca_directory().map { String(cString: $0) } : nil }
    /// The file that has the system's authorities; `nil` for none.
    var systemAuthorityFile: String? { ccurlew_default_ca_file(usesEnvironment).map { String(cString: $0) } }
    /// The directory that has the system's authorities; `nil` for none.
    var systemAuthorityDirectory: String? { ccurlew_default_ca_directory(usesEnvironment).map { String(cString: $0) } }

    var authoritySource: AuthoritySource {
        guard let others = additionalAuthorities?.pem else {
            if let data = certificateAuthorities ?? authorityContents?.data { return .data(data) }
            return certificateAuthorityFile.map { .file($0) } ?? .system
        }
        let more = Data("\n".utf8) + others
        if let data = certificateAuthorities ?? authorityContents?.data { return .data(data + more) }
        do {
            if certificateAuthorityFile == nil, let directory = systemAuthorityDirectory {
                // The system's directory has what its file has.
                let file = try environmentAuthorityFile.map { try Data(contentsOf: URL(fileURLWithPath: $0)) + more }
                return .systemDirectory(directory, file ?? others)
            }
            guard let file = certificateAuthorityFile ?? systemAuthorityFile else { return .data(others) }
            return .data(try Data(contentsOf: URL(fileURLWithPath: file)) + more)
        } catch {
            return .unreadable(FileError.text(error, of: certificateAuthorityFile ?? systemAuthorityFile ?? ""))
        }
    }
}
