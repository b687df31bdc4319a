// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

/// Makes a value of a data or upload request's response.
@preconcurrency public protocol DataResponseSerializerProtocol<SerializedObject>: Sendable {
    /// What it makes.
    associatedtype SerializedObject

    /// Makes the value of request, response, body and error; given an error, it passes that on unless it knows better.
    ///
    /// Runs on the request's queue, or in the task that awaits.
    var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<SerializedObject, any Error> { get }
}

/// Makes a value of a download's response.
@preconcurrency public protocol DownloadResponseSerializerProtocol<SerializedObject>: Sendable {
    /// What it makes.
    associatedtype SerializedObject

    /// Makes the value of request, response, file and error; given an error, it passes that on unless it knows better.
    ///
    /// Runs on the request's queue, or in the task that awaits.
    var serializeResponse: (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<SerializedObject, any Error> { get }
}

/// A data serializer out of a closure.
public struct DataResponseSerializer<Value>: DataResponseSerializerProtocol {
    /// What it makes.
    public typealias SerializedObject = Value

    /// Makes the value; see ``DataResponseSerializerProtocol/serializeResponse``.
    public let serializeResponse: @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>
    /// The same for what needs no more than the head: Foundation's objects cost more than all the rest.
    let serializeBody: (@Sendable (ResponseHead?, Data?) throws -> Value)?

    /// Makes a serializer of a closure.
    @preconcurrency
    public init(serializeResponse: @escaping @Sendable (URLRequest?, HTTPURLResponse?, Data?, (any Error)?) -> Result<Value, any Error>) {
        self.serializeResponse = serializeResponse
        serializeBody = nil
    }

    /// Makes a serializer of what is done with a body when there is no error.
    init(serializeBody: @escaping @Sendable (ResponseHead?, Data?) throws -> Value) {
        self.serializeBody = serializeBody
        serializeResponse = { request, response, data, error in
            if let error { return .failure(error) }
            return Result { try serializeBody(ResponseContext(request: request, response: response).head, data) }
        }
    }
}

/// A download serializer out of a closure.
public struct DownloadResponseSerializer<Value>: DownloadResponseSerializerProtocol {
    /// What it makes.
    public typealias SerializedObject = Value

    /// Makes the value; see ``DownloadResponseSerializerProtocol/serializeResponse``.
    public let serializeResponse: @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>

    /// Makes a serializer of a closure.
    @preconcurrency
    public init(serializeResponse: @escaping @Sendable (URLRequest?, HTTPURLResponse?, URL?, (any Error)?) -> Result<Value, any Error>) {
        self.serializeResponse = serializeResponse
    }

    /// Makes a serializer that reads the file and has another one make the value of its content.
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
