// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import Dispatch

// Curlew's functions by which a program learns of errors. Whoever calls them by this module has the errors of the request's session as
// Alamofire's. Where the sessions are made could not be the place: an initializer here would stand in the way of subclasses, which call
// those of the class.

extension Request {
    /// The request, its session's errors from now on those that Alamofire's users know.
    func translatingErrors() -> Self {
        session.deliverErrors(as: AFError.translate)
        return self
    }
}

extension TaskDelegate {
    /// Why the request failed; `nil` as long as it has not.
    public var error: (any Error)? { ownError.map(AFError.translate) }
}

extension DataRequest {
    /// Adds a handler that gets the response as it came.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void) -> Self {
        translatingErrors().addResponseHandler(queue, completionHandler)
    }

    /// Adds a handler that gets the response serialized by a serializer of one's own.
    @preconcurrency @discardableResult
    public func response<S: DataResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DataResponse<S.SerializedObject>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// Adds a handler that gets the body.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DataResponse<Data>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.data, completionHandler)
    }

    /// Adds a handler that gets the body as text, in the given encoding, else in the response's charset, else in ISO 8859-1.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil, completionHandler: @escaping @Sendable (DataResponse<String>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.string(encoding), completionHandler)
    }

    /// Adds a handler that gets what `JSONSerialization` makes of the body.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.json(options), completionHandler)
    }

    /// Adds a handler that gets what `PropertyListSerialization` makes of the body.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.propertyList(options), completionHandler)
    }

    /// Adds a handler that gets the body decoded.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DataResponse<Value>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.decodable(type, decoder), completionHandler)
    }

    /// The body, to be awaited.
    public func serializingData() -> DataTask<Data> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.data)
    }

    /// The body as text, to be awaited; in the given encoding, else in the response's charset, else in ISO 8859-1.
    public func serializingString(encoding: String.Encoding? = nil) -> DataTask<String> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.string(encoding))
    }

    /// The body decoded, to be awaited.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DataTask<Value> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.decodable(type, decoder))
    }

    /// What a serializer of one's own makes of the response, to be awaited.
    public func serializingResponse<Value: Sendable>(using serializer: DataResponseSerializer<Value>) -> DataTask<Value> {
        DataTask(request: translatingErrors(), serializer: serializer)
    }
}

extension DownloadRequest {
    /// Adds a handler that gets the response as it came.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDownloadResponse) -> Void) -> Self {
        translatingErrors().addResponseHandler(queue, completionHandler)
    }

    /// Adds a handler that gets the response serialized by a serializer of one's own.
    @preconcurrency @discardableResult
    public func response<S: DownloadResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DownloadResponse<S.SerializedObject>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// Adds a handler that gets the file's URL.
    @preconcurrency @discardableResult
    public func responseURL(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<URL>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, Self.urlResponseSerializer(), completionHandler)
    }

    /// Adds a handler that gets the file's content.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, DownloadResponseSerializer(of: CurlewCore.Serializers.data), completionHandler)
    }

    /// Adds a handler that gets the file's content as text, in the given encoding, else in the response's charset, else in ISO 8859-1.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.string(encoding)), completionHandler)
    }

    /// Adds a handler that gets what `JSONSerialization` makes of the file's content.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.json(options)), completionHandler)
    }

    /// Adds a handler that gets what `PropertyListSerialization` makes of the file's content.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.propertyList(options)), completionHandler)
    }

    /// Adds a handler that gets the file's content decoded.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DownloadResponse<Value>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.decodable(type, decoder)), completionHandler)
    }

    /// The file's URL, to be awaited.
    public func serializingURL() -> DownloadTask<URL> {
        DownloadTask(request: translatingErrors(), serializer: Self.urlResponseSerializer())
    }

    /// The file's content, to be awaited.
    public func serializingData() -> DownloadTask<Data> {
        DownloadTask(request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.data))
    }

    /// The file's content as text, to be awaited; in the given encoding, else in the response's charset, else in ISO 8859-1.
    public func serializingString(encoding: String.Encoding? = nil) -> DownloadTask<String> {
        DownloadTask(request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.string(encoding)))
    }

    /// The file's content decoded, to be awaited.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DownloadTask<Value> {
        DownloadTask(
            request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.decodable(type, decoder)))
    }

    /// What a serializer of one's own makes of the response, to be awaited.
    public func serializingResponse<Value: Sendable>(using serializer: DownloadResponseSerializer<Value>) -> DownloadTask<Value> {
        DownloadTask(request: translatingErrors(), serializer: serializer)
    }
}
