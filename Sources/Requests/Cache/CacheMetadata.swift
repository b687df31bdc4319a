// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The metadata stored with a cached body, by which it is validated later.
struct CacheMetadata: Codable, Equatable {
    /// The version of this format; other versions are not read.
    static let currentForm = 1

    var form = CacheMetadata.currentForm
    var version: Int64
    /// A digest, so that reading the cache does not reveal the data.
    var sensitiveDataDigest: String?
    /// The raw value of the body's text encoding.
    var stringEncoding: UInt
    var creationDate: Date
    var appVersion: String?

    /// Decodes stored metadata; returns `nil` for anything else.
    init?(_ data: Data) {
        guard let metadata = try? JSONDecoder().decode(CacheMetadata.self, from: data), metadata.form == Self.currentForm else {
            return nil
        }
        self = metadata
    }

    init(version: Int64, sensitiveDataDigest: String?, stringEncoding: String.Encoding, creationDate: Date, appVersion: String?) {
        self.version = version
        self.sensitiveDataDigest = sensitiveDataDigest
        self.stringEncoding = stringEncoding.rawValue
        self.creationDate = creationDate
        self.appVersion = appVersion
    }

    static func digest(of sensitiveData: Any?) -> String? {
        sensitiveData.map { SHA256.digest(of: CanonicalText.of($0).utf8).hexDigits }
    }

    func data() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(self)
    }
}
