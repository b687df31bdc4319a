// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP

/// The response of a data or upload request, for `await`.
///
/// The response is serialized in the awaiting task, without a dispatch queue. Cancelling that task cancels the request; the error is then
/// `CancellationError`, and ``CurlewError/cancelled`` if ``Request/cancel()`` was called. Each access serializes the response again.
public struct DataTask<Value: Sendable>: Sendable {
    let request: DataRequest
    let serializer: DataResponseSerializer<Value>

    package init(request: DataRequest, serializer: DataResponseSerializer<Value>) {
        self.request = request
        self.serializer = serializer
    }

    /// The serialized response, whether the request succeeded or failed: its error is the one that ``value`` throws.
    public var response: DataResponse<Value> {
        get async {
            await request.waitForEnd()
            let response = request.makeResponse(serializer)
            return request.wasCancelledByTask ? response.mapError { _ in CancellationError() } : response
        }
    }

    /// The value, or the error that ``value`` throws.
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
    /// `throws` has no type, because errors of your own code are passed on unchanged. `error.asCurlewError` is the cast to the library's.
    ///
    /// - Throws: one of these:
    ///   - ``CurlewError`` if the request, a built-in validation or a built-in serializer failed; ``CurlewError/cancelled`` after
    ///     ``cancel()``. Its ``CurlewError/request`` has method, URL, attempt and status.
    ///   - `CancellationError` if the awaiting task was cancelled, which cancels the request.
    ///   - What your own code threw: an adapter, a validation, a serializer, a parameter encoding.
    ///   - `CocoaError` for a file, such as an upload's, that can't be opened, read or written.
    public var value: Value {
        get async throws {
            await request.waitForEnd()
            // Without a `DataResponse`, which most callers of `value` do not need.
            do {
                return try request.makeValue(serializer)
            } catch {
                throw request.wasCancelledByTask ? CancellationError() : request.delivered(error)
            }
        }
    }

    /// Cancels the request.
    public func cancel() {
        request.cancel()
    }
}

/// The response of a download, for `await`; see ``DataTask``.
public struct DownloadTask<Value: Sendable>: Sendable {
    let request: DownloadRequest
    let serializer: DownloadResponseSerializer<Value>

    package init(request: DownloadRequest, serializer: DownloadResponseSerializer<Value>) {
        self.request = request
        self.serializer = serializer
    }

    /// The serialized response, whether the request succeeded or failed: its error is the one that ``value`` throws.
    public var response: DownloadResponse<Value> {
        get async {
            await request.waitForEnd()
            let response = request.makeResponse(serializer)
            return request.wasCancelledByTask ? response.mapError { _ in CancellationError() } : response
        }
    }

    /// The value, or the error that ``value`` throws.
    public var result: Result<Value, any Error> {
        get async { await response.result }
    }

    /// The value.
    ///
    /// - Throws: as ``DataTask/value``; `CocoaError` also for the downloaded file.
    public var value: Value {
        get async throws { try await response.result.get() }
    }

    /// Cancels the request.
    public func cancel() {
        request.cancel()
    }
}

extension Request {
    /// Whether the request was cancelled because the current task was, which awaits it.
    var wasCancelledByTask: Bool {
        guard Task.isCancelled, case CurlewError.cancelled? = delegate.ownError else { return false }
        return true
    }
}

extension DataRequest {
    /// Returns the body, for `await`.
    public func serializingData() -> DataTask<Data> {
        DataTask(request: self, serializer: .data)
    }

    /// Returns the body as a string, for `await`; decoded in the given encoding, else in that of the response.
    public func serializingString(encoding: String.Encoding? = nil) -> DataTask<String> {
        DataTask(request: self, serializer: .string(encoding: encoding))
    }

    /// Returns the decoded body, for `await`; of an empty one, such as that of a 204, `nil` if the type is optional, else an error.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DataTask<Value> {
        DataTask(request: self, serializer: .decodable(of: type, decoder: decoder))
    }

    /// Returns the response as serialized by a custom serializer, for `await`.
    public func serializingResponse<Value: Sendable>(using serializer: DataResponseSerializer<Value>) -> DataTask<Value> {
        DataTask(request: self, serializer: serializer)
    }
}

extension DownloadRequest {
    /// Returns the file's URL, for `await`.
    public func serializingURL() -> DownloadTask<URL> {
        DownloadTask(request: self, serializer: .url)
    }

    /// Returns the file's content, for `await`.
    public func serializingData() -> DownloadTask<Data> {
        DownloadTask(request: self, serializer: .data)
    }

    /// Returns the file's content as a string, for `await`.
    public func serializingString(encoding: String.Encoding? = nil) -> DownloadTask<String> {
        DownloadTask(request: self, serializer: .string(encoding: encoding))
    }

    /// Returns the decoded content of the file, for `await`; of an empty one `nil` if the type is optional, else an error.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DownloadTask<Value> {
        DownloadTask(request: self, serializer: .decodable(of: type, decoder: decoder))
    }

    /// Returns the response as serialized by a custom serializer, for `await`.
    public func serializingResponse<Value: Sendable>(using serializer: DownloadResponseSerializer<Value>) -> DownloadTask<Value> {
        DownloadTask(request: self, serializer: serializer)
    }
}
