// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Serializes the responses of data and upload requests.
@preconcurrency public protocol DataResponseSerializerProtocol<SerializedObject>: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// Returns the value of a request, response, body and error; usually fails with the error if there is one.
    ///
    /// Called on the request's queue, or in the awaiting task.
    var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject, any Error> { get }
}

/// Serializes the responses of downloads.
@preconcurrency public protocol DownloadResponseSerializerProtocol<SerializedObject>: Sendable {
    /// The type of the value.
    associatedtype SerializedObject

    /// Returns the value of a request, response, file and error; usually fails with the error if there is one.
    ///
    /// Called on the request's queue, or in the awaiting task.
    var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject, any Error> { get }
}

/// A serializer of data responses, made from a closure.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
    /// Returns the value; see ``DataResponseSerializerProtocol/serializeResponse``.
    public let serializeResponse: @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    /// Returns the value from head and body, so that no `URLRequest` and `HTTPURLResponse` are created; `nil` for users' serializers.
    let serializeBody: (@Sendable (ResponseHead?, Data?) throws -> Value)?

    /// Creates a serializer from a closure.
    @preconcurrency
    public init(serializeResponse: @escaping @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>) {
        self.serializeResponse = serializeResponse
        serializeBody = nil
    }

    /// Creates a serializer from a closure that is called if the request did not fail.
    init(serializeBody: @escaping @Sendable (ResponseHead?, Data?) throws -> Value) {
        self.serializeBody = serializeBody
        serializeResponse = { request, response, data, error in
            if let error { return .failure(error) }
            return Result { try serializeBody(ResponseContext(request: request, response: response).head, data) }
        }
    }
}

/// A serializer of downloads, made from a closure.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
    /// Returns the value; see ``DownloadResponseSerializerProtocol/serializeResponse``.
    public let serializeResponse: @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>

    /// Creates a serializer from a closure.
    @preconcurrency
    public init(serializeResponse: @escaping @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>) {
        self.serializeResponse = serializeResponse
    }

    /// Creates a serializer that reads the file and passes its content to another serializer.
    package init(of content: DataResponseSerializer<Value>) {
        serializeResponse = { request, response, fileURL, error in
            if let error { return .failure(error) }
            guard let fileURL else { return .failure(CurlewError.responseSerializationFailed(reason: .inputFileNil)) }
            guard let data = try? Data(readingFrom: fileURL) else {
                return .failure(CurlewError.responseSerializationFailed(reason: .inputFileReadFailed(at: fileURL)))
            }
            return content.serializeResponse(request, response, data, nil)
        }
    }
}

// MARK: - The built-in serializers

extension DataResponseSerializerProtocol where Self == DataResponseSerializer<Data> {
    /// The body: an error if there is none; empty for the statuses 204 and 205.
    public static var data: Self { Serializers.data }
}

extension DataResponseSerializerProtocol where Self == DataResponseSerializer<String> {
    /// The body as text, in the given encoding, else in that of the response.
    ///
    /// The response's is that of a byte order mark, else the charset of its content type, else the encoding that an XML document declares.
    /// Without any of them it is UTF-8; bytes that are not UTF-8 are ISO 8859-1, except those of JSON, XML and event streams, which are an
    /// error. So is a charset that is unknown: ``CurlewError/ResponseSerializationFailureReason/unknownCharset(_:)``.
    public static func string(encoding: String.Encoding? = nil) -> Self { Serializers.string(encoding) }
}

extension DataResponseSerializerProtocol where Self == DataResponseSerializer<Any> {
    /// The body as decoded by `JSONSerialization` (RFC 8259); `NSNull` for the statuses 204 and 205.
    public static func json(options: JSONSerialization.ReadingOptions = .allowFragments) -> Self { Serializers.json(options) }

    /// The body as decoded by `PropertyListSerialization`; `NSNull` for the statuses 204 and 205.
    public static func propertyList(options: PropertyListSerialization.ReadOptions = []) -> Self { Serializers.propertyList(options) }
}

extension DataResponseSerializerProtocol {
    /// The decoded body; a body without bytes is an error.
    public static func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> Self where Self == DataResponseSerializer<Value> {
        Serializers.decodable(type, decoder)
    }
}

extension DownloadResponseSerializerProtocol where Self == DownloadResponseSerializer<URL> {
    /// The file's URL: an error if there is no file.
    public static var url: Self {
        DownloadResponseSerializer { _, _, fileURL, error in
            if let error { return .failure(error) }
            return fileURL.map { .success($0) } ?? .failure(CurlewError.responseSerializationFailed(reason: .inputFileNil))
        }
    }
}

extension DownloadResponseSerializerProtocol where Self == DownloadResponseSerializer<Data> {
    /// The file's content.
    public static var data: Self { Self(of: Serializers.data) }
}

extension DownloadResponseSerializerProtocol where Self == DownloadResponseSerializer<String> {
    /// The file's content as text, in the given encoding, else in that of the response, as
    /// ``DataResponseSerializerProtocol/string(encoding:)``.
    public static func string(encoding: String.Encoding? = nil) -> Self { Self(of: Serializers.string(encoding)) }
}

extension DownloadResponseSerializerProtocol where Self == DownloadResponseSerializer<Any> {
    /// The file's content as decoded by `JSONSerialization` (RFC 8259).
    public static func json(options: JSONSerialization.ReadingOptions = .allowFragments) -> Self { Self(of: Serializers.json(options)) }

    /// The file's content as decoded by `PropertyListSerialization`.
    public static func propertyList(options: PropertyListSerialization.ReadOptions = []) -> Self {
        Self(of: Serializers.propertyList(options))
    }
}

extension DownloadResponseSerializerProtocol {
    /// The file's decoded content; a file without bytes is an error.
    public static func decodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> Self where Self == DownloadResponseSerializer<Value> {
        Self(of: Serializers.decodable(type, decoder))
    }
}
