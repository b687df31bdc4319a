// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A file as the value of a variable of type `Upload`, sent by the GraphQL multipart request specification.
///
/// ```swift
/// let request = GraphQLRequest(
///     "mutation ($file: Upload!) { attach(file: $file) { id } }", variables: ["file": GraphQLUpload(file: url)])
/// ```
///
/// It may be anywhere in the variables, in arrays and objects too. A file on disk is read while it is sent, again for each attempt.
public struct GraphQLUpload: Encodable, Sendable {
    private enum Source: Sendable {
        case file(URL)
        case data(Data)
    }

    /// A file with its place.
    struct Placed: Sendable {
        /// The path of the specification: `variables.files.0`.
        let path: String
        let upload: GraphQLUpload
    }

    /// Where an encoder collects the files.
    static var placesKey: CodingUserInfoKey? { CodingUserInfoKey(rawValue: "org.curlew.graphql.uploads") }

    private let source: Source
    private let fileName: String
    private let mimeType: String

    /// Creates an upload of a file on disk, which must exist until the request has finished.
    ///
    /// - Parameters:
    ///   - file: the file's URL.
    ///   - fileName: the name that the server gets; the file's own by default.
    ///   - mimeType: the content type; by default as the extension says.
    public init(file: URL, fileName: String? = nil, mimeType: String? = nil) {
        source = .file(file)
        self.fileName = fileName ?? file.lastPathComponent
        self.mimeType = mimeType ?? MIMETypes.type(forExtension: file.pathExtension)
    }

    /// Creates an upload of bytes in memory.
    public init(data: Data, fileName: String, mimeType: String = "application/octet-stream") {
        source = .data(data)
        self.fileName = fileName
        self.mimeType = mimeType
    }

    /// Encodes `null`, in whose place the server puts the file.
    ///
    /// - Throws: `EncodingError` if it is no variable of a request that ``GraphQLClient`` sends by HTTP.
    public func encode(to encoder: any Encoder) throws {
        guard let key = Self.placesKey, let places = encoder.userInfo[key] as? Lock<[Placed]> else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "A file can be sent with a query or a mutation by POST only.")
            )
        }
        let path = (["variables"] + encoder.codingPath.map(\.step)).joined(separator: ".")
        places.withLock { $0.append(Placed(path: path, upload: self)) }
        var container = encoder.singleValueContainer()
        try container.encodeNil()
    }

    fileprivate func append(to form: MultipartFormData, withName name: String) {
        switch source {
        case .file(let url): form.append(url, withName: name, fileName: fileName, mimeType: mimeType)
        case .data(let data): form.append(data, withName: name, fileName: fileName, mimeType: mimeType)
        }
    }
}

extension CodingKey {
    /// The name or the index in a path. Keys of a program's own type may have a number beside their name.
    var step: String {
        if let intValue, stringValue == "Index \(intValue)" { "\(intValue)" } else { stringValue }
    }
}

extension GraphQLParameters {
    /// The parameters and the files as a form: `operations`, `map`, and then the files, so that a server can begin before it has them.
    func form() throws -> MultipartFormData {
        let form = MultipartFormData()
        let names = uploads.indices.map { "\($0)" }
        let map = Dictionary(uniqueKeysWithValues: zip(names, uploads.map { [$0.path] }))
        form.append(try json(), withName: "operations", mimeType: "application/json")
        form.append(try Self.encode(map), withName: "map", mimeType: "application/json")
        for (name, placed) in zip(names, uploads) { placed.upload.append(to: form, withName: name) }
        return form
    }
}

// MARK: - Descriptions

extension GraphQLUpload: CustomStringConvertible, CustomReflectable {
    /// The name that the server gets.
    public var description: String { Redaction.escaped(fileName) }

    /// Shows what the description does.
    public var customMirror: Mirror { .redacted(self, ["fileName": description]) }
}
