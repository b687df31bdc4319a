// SPDX-License-Identifier: Apache-2.0
import CCurlew
import CurlewHTTP

/// The trust anchors that a certificate path has to lead to.
struct TrustAnchors: Sendable, Hashable {
    private let certificates: [Data]
    private let file: String?
    private let directory: String?
    /// The file of certificate revocation lists to check the path against; `nil` for none.
    var revocationLists: String?
    let sessionRevocationLists: String?

    /// Trusts the given certificates only.
    init(certificates: [Certificate]) {
        self.certificates = certificates.map(\.der)
        file = nil
        directory = nil
        sessionRevocationLists = nil
    }

    /// Trusts the certificates that libcurl trusts with the given options.
    init(_ options: TLSOptions) {
        sessionRevocationLists = options.revocationListFile
        let others = options.additionalAuthorities?.certificates.map(\.der) ?? []
        if let data = options.certificateAuthorities {
            certificates = Certificate.all(inPEM: data).map(\.der) + others
            file = nil
            directory = nil
        } else if let contents = options.authorityContents {
            certificates = contents.certificates + others
            file = nil
            directory = nil
        } else {
            certificates = others
            file = options.certificateAuthorityFile ?? options.systemAuthorityFile
            directory = options.certificateAuthorityFile == nil ? options.systemAuthorityDirectory : nil
        }
    }

    /// Verifies certificates, the leaf first. Returns the path as far as it could be built, and the reason why it is not valid; `nil` if it
    /// is.
    func verify(_ chain: [Certificate]) -> (path: [Certificate], reason: String?) {
        let path = CertificateList()
        let reason = Self.withBytes(of: chain.map(\.der)) { chain in
            withCAnchors { anchors -> String? in
                var anchors = anchors
                let reason = ccurlew_verify(chain.baseAddress, chain.count, &anchors, CertificateList.add, path.context)
                return reason.map { String(cString: $0) }
            }
        }
        return (path.certificates ?? [], path.certificates == nil ? "a certificate can't be read" : reason)
    }

    private func withCAnchors<Result>(_ body: (ccurlew_anchors) -> Result) -> Result {
        Self.withBytes(of: certificates) { certificates in
            Self.withCString(file) { file in
                Self.withCString(directory) { directory in
                    Self.withCString(revocationLists) { lists in
                        body(
                            ccurlew_anchors(
                                certificates: certificates.baseAddress, count: certificates.count, file: file, directory: directory,
                                crl_file: lists))
                    }
                }
            }
        }
    }

    private static func withBytes<Result>(of items: [Data], _ body: (UnsafeBufferPointer<ccurlew_bytes>) -> Result) -> Result {
        // One allocation for all of them, because a pointer into Data is valid only within its closure.
        let all = items.reduce(into: [UInt8]()) { $0.append(contentsOf: $1) }
        return all.withUnsafeBufferPointer { buffer in
            var offset = 0
            let entries = items.map { item in
                defer { offset += item.count }
                return ccurlew_bytes(bytes: buffer.baseAddress.map { $0 + offset }, length: item.count)
            }
            return entries.withUnsafeBufferPointer(body)
        }
    }

    private static func withCString<Result>(_ string: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        if let string { string.withCString(body) } else { body(nil) }
    }
}

/// Collects certificates from C, one at a time.
final class CertificateList {
    /// The certificates so far; `nil` after one that could not be parsed.
    private(set) var certificates: [Certificate]? = []

    /// The context to pass to C along with ``add``; unretained, so the list must outlive the call.
    var context: UnsafeMutableRawPointer { borrowedPointer(to: self) }

    static let add: ccurlew_certificate_callback = { context, bytes, length in
        guard let context, let bytes else { return }
        let data = Data(UnsafeBufferPointer(start: bytes, count: length))
        context.borrow(CertificateList.self) { list in
            if let certificate = Certificate(der: data) { list.certificates?.append(certificate) } else { list.certificates = nil }
        }
    }
}
