// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// What is kept beside a cached body, by which it is judged later.
struct CacheMetadata: Codable, Equatable {
    /// The version of this form; others are not read.
    static let currentForm = 1

    var form = CacheMetadata.currentForm
    var version: Int64
    /// Not the data itself: who reads the cache is not to learn it.
    var sensitiveDataDigest: String?
    /// The raw value of the encoding in which the body is text.
    var stringEncoding: UInt
    var creationDate: Date
    var appVersion: String?

    /// Reads what was kept; `nil` for anything else.
    init?(_ data: Data) {
        guard let metadata = try? JSONDecoder().decode(CacheMetadata.self, from: data), metadata.form == Self.currentForm else {
            return nil
        }
        self = metadata
    }

    init(version: Int64, sensitiveData: Any?, stringEncoding: String.Encoding, creationDate: Date, appVersion: String?) {
        self.version = version
        sensitiveDataDigest = Self.digest(of: sensitiveData)
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
