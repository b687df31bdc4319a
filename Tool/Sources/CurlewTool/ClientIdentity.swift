// SPDX-License-Identifier: Apache-2.0
import Curlew

/// The client's certificate and its key: in one file or two of PEM, or in a PKCS #12 archive. The password of an encrypted key is asked
/// for, where it is not given.
struct ClientIdentity: Sendable {
    enum Form: Sendable {
        /// PEM, or PKCS #12 where the file is no text.
        case automatic
        case der
        case pkcs12

        /// - Parameter type: what curl's option `--cert-type` says.
        init?(curl type: String?) {
            switch type {
            case nil: self = .automatic
            case "PEM": self = .automatic
            case "DER": self = .der
            case "P12": self = .pkcs12
            default: return nil
            }
        }
    }

    let file: String
    /// `nil` for the same file.
    let keyFile: String?
    let password: String?
    var form = Form.automatic

    /// Whether a file is a PKCS #12 archive, and no PEM.
    static func isArchive(_ path: String) -> Bool {
        guard let contents = try? contents(path) else { return false }
        return contents.starts(with: [0x30]) && contents.firstRange(of: Data("-----BEGIN ".utf8)) == nil
    }

    /// Reads the files as far as it has to.
    func certificate() throws -> ClientCertificate {
        let given = password ?? getenv("CURLEW_KEY_PASSWORD").map { String(cString: $0) }
        let contents = try Self.contents(file)
        let isText = contents.firstRange(of: Data("-----BEGIN ".utf8)) != nil
        if form == .pkcs12 || form == .automatic && !isText {
            // An archive begins as a sequence (ASN.1), whose length takes more than one byte.
            guard contents.starts(with: [0x30]), contents.count > 64 else {
                throw UsageError("\(file.quoted) is neither a certificate in PEM nor a PKCS #12 archive")
            }
            if let keyFile {
                throw UsageError("\(file.quoted) is a PKCS #12 archive, which has its key in itself: \(keyFile.quoted) has no use")
            }
            return .pkcs12(file: file, password: try given ?? Credentials.prompt("password of \(file): ") ?? "")
        }
        let key = try keyFile.map(Self.contents) ?? contents
        guard let begin = key.firstRange(of: Data("PRIVATE KEY-----".utf8)) else {
            let hint = keyFile == nil ? "; --key names the file of the key" : ""
            throw UsageError("\((keyFile ?? file).quoted) has no private key in PEM\(hint)")
        }
        // PKCS #8 says so in its first line, older forms in a field below it.
        let isEncrypted =
            key[..<begin.lowerBound].ends(with: "ENCRYPTED ")
            || key[begin.upperBound...].prefix(64).firstRange(of: Data("ENCRYPTED".utf8)) != nil
        var password = given
        if isEncrypted, password == nil {
            password = try Credentials.prompt("password of \(keyFile ?? file): ")
            if password == nil {
                throw UsageError(
                    "the key in \((keyFile ?? file).quoted) is encrypted, and there is no terminal to ask for its password; "
                        + "the environment variable CURLEW_KEY_PASSWORD may have it")
            }
        }
        if form == .der {
            let base64 = contents.base64EncodedString(options: .lineLength64Characters)
            let text = "-----BEGIN CERTIFICATE-----\n\(base64)\n-----END CERTIFICATE-----\n"
            return .pem(Data(text.utf8), key: key, password: password)
        }
        return .pem(file: file, keyFile: keyFile ?? file, password: password)
    }

    private static func contents(_ path: String) throws -> Data {
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
            throw FileFailure(path: path, code: EISDIR)
        }
        errno = 0
        guard let data = InputFile.contents(path) else { throw FileFailure(path: path, code: errno == 0 ? EIO : errno) }
        return data
    }
}

extension Data {
    fileprivate func ends(with text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
