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
    /// The type of the value.
    public typealias SerializedObject = Value

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
    /// The type of the value.
    public typealias SerializedObject = Value

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
