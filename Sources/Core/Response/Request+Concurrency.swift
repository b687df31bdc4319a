// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// A data or upload request's response, to be awaited.
///
/// Awaiting resumes in the task that waits, with no queue in between; the response is serialized there. Cancelling that task cancels the
/// request. Each access serializes anew.
public struct DataTask<Value: Sendable>: Sendable {
    let request: DataRequest
    let serializer: DataResponseSerializer<Value>

    package init(request: DataRequest, serializer: DataResponseSerializer<Value>) {
        self.request = request
        self.serializer = serializer
    }

    /// The response, serialized, whether the request failed or not.
    public var response: DataResponse<Value> {
        get async {
            await request.waitForEnd()
            return request.makeResponse(serializer)
        }
    }

    /// The value, or why there is none.
    public var result: Result<Value, any Error> {
        get async {
            do {
                return .success(try await value)
            } catch {
                return .failure(error)
            }
        }
    }

    /// The value.
    ///
    /// - Throws: why there is none: ``CurlewError``, `CocoaError`, or what code of the user threw.
    public var value: Value {
        get async throws {
            await request.waitForEnd()
            do {
                return try request.makeValue(serializer)
            } catch {
                throw request.session.delivered(error)
            }
        }
    }

    /// Cancels the request.
    public func cancel() {
        request.cancel()
    }
}

/// A download's response, to be awaited, as a ``DataTask``.
public struct DownloadTask<Value: Sendable>: Sendable {
    let request: DownloadRequest
    let serializer: DownloadResponseSerializer<Value>

    package init(request: DownloadRequest, serializer: DownloadResponseSerializer<Value>) {
        self.request = request
        self.serializer = serializer
    }

    /// The response, serialized, whether the request failed or not.
    public var response: DownloadResponse<Value> {
        get async {
            await request.waitForEnd()
            return request.makeResponse(serializer)
        }
    }

    /// The value, or why there is none.
    public var result: Result<Value, any Error> {
        get async { await response.result }
    }

    /// The value.
    ///
    /// - Throws: why there is none: ``CurlewError``, `CocoaError`, or what code of the user threw.
    public var value: Value {
        get async throws { try await response.result.get() }
    }

    /// Cancels the request.
    public func cancel() {
        request.cancel()
    }
}

extension DataRequest {
    /// The body, to be awaited.
    public func serializingData() -> DataTask<Data> {
        DataTask(request: self, serializer: Self.dataResponseSerializer())
    }

    /// The body as text, to be awaited; in the given encoding, else in the response's charset, else in ISO 8859-1.
    public func serializingString(encoding: String.Encoding? = nil) -> DataTask<String> {
        DataTask(request: self, serializer: Self.stringResponseSerializer(encoding: encoding))
    }

    /// The body decoded, to be awaited.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DataTask<Value> {
        DataTask(request: self, serializer: Self.decodableResponseSerializer(of: type, decoder: decoder))
    }

    /// What a serializer of one's own makes of the response, to be awaited.
    public func serializingResponse<Value: Sendable>(using serializer: DataResponseSerializer<Value>) -> DataTask<Value> {
        DataTask(request: self, serializer: serializer)
    }
}

extension DownloadRequest {
    /// The file's URL, to be awaited.
    public func serializingURL() -> DownloadTask<URL> {
        DownloadTask(request: self, serializer: Self.urlResponseSerializer())
    }

    /// The file's content, to be awaited.
    public func serializingData() -> DownloadTask<Data> {
        DownloadTask(request: self, serializer: Self.dataResponseSerializer())
    }

    /// The file's content as text, to be awaited.
    public func serializingString(encoding: String.Encoding? = nil) -> DownloadTask<String> {
        DownloadTask(request: self, serializer: Self.stringResponseSerializer(encoding: encoding))
    }

    /// The file's content decoded, to be awaited.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DownloadTask<Value> {
        DownloadTask(request: self, serializer: Self.decodableResponseSerializer(of: type, decoder: decoder))
    }

    /// What a serializer of one's own makes of the response, to be awaited.
    public func serializingResponse<Value: Sendable>(using serializer: DownloadResponseSerializer<Value>) -> DownloadTask<Value> {
        DownloadTask(request: self, serializer: serializer)
    }
}
