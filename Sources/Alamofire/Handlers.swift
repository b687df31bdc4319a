// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import Dispatch

// Curlew's functions that report errors. Calling this module's versions switches the errors of the request's session to Alamofire's. They
// are translated when they are delivered: inside the library every decision sees a `CurlewError`, in programs for Alamofire too. The
// session's creation would be the wrong place to do so: an initializer declared here would get in the way of subclasses, which call the
// class's own initializers.

extension Request {
    /// Returns the request after switching its session's errors to those that Alamofire's users know.
    func translatingErrors() -> Self {
        NotificationMonitor.register()
        session.deliverErrors(as: AFError.translate)
        return self
    }
}

extension TaskDelegate {
    /// Why the request failed; `nil` if it has not.
    public var error: (any Error)? { ownError.map(AFError.translate) }
}

extension DataRequest {
    /// Adds a handler that receives the response without serializing it.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void) -> Self {
        translatingErrors().addResponseHandler(queue, completionHandler)
    }

    /// Adds a handler that receives the response serialized by a custom serializer.
    @preconcurrency @discardableResult
    public func response<S: DataResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DataResponse<S.SerializedObject>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// Adds a handler that receives the body.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DataResponse<Data>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.data, completionHandler)
    }

    /// Adds a handler that receives the body as text, in the given encoding, else in that of the response.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil, completionHandler: @escaping @Sendable (DataResponse<String>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.string(encoding), completionHandler)
    }

    /// Adds a handler that receives the body as decoded by `JSONSerialization`.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.json(options), completionHandler)
    }

    /// Adds a handler that receives the body as decoded by `PropertyListSerialization`.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.propertyList(options), completionHandler)
    }

    /// Adds a handler that receives the decoded body.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DataResponse<Value>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, CurlewCore.Serializers.decodable(type, decoder), completionHandler)
    }

    /// Returns a task for the body.
    public func serializingData() -> DataTask<Data> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.data)
    }

    /// Returns a task for the body as text, in the given encoding, else in that of the response.
    public func serializingString(encoding: String.Encoding? = nil) -> DataTask<String> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.string(encoding))
    }

    /// Returns a task for the decoded body.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DataTask<Value> {
        DataTask(request: translatingErrors(), serializer: CurlewCore.Serializers.decodable(type, decoder))
    }

    /// Returns a task for the value that a custom serializer makes of the response.
    public func serializingResponse<Value: Sendable>(using serializer: DataResponseSerializer<Value>) -> DataTask<Value> {
        DataTask(request: translatingErrors(), serializer: serializer)
    }
}

extension DownloadRequest {
    /// Adds a handler that receives the response without serializing it.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDownloadResponse) -> Void) -> Self {
        translatingErrors().addResponseHandler(queue, completionHandler)
    }

    /// Adds a handler that receives the response serialized by a custom serializer.
    @preconcurrency @discardableResult
    public func response<S: DownloadResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DownloadResponse<S.SerializedObject>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// Adds a handler that receives the file's URL.
    @preconcurrency @discardableResult
    public func responseURL(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<URL>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, .url, completionHandler)
    }

    /// Adds a handler that receives the file's content.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(queue, DownloadResponseSerializer(of: CurlewCore.Serializers.data), completionHandler)
    }

    /// Adds a handler that receives the file's content as text, in the given encoding, else in that of the response.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.string(encoding)), completionHandler)
    }

    /// Adds a handler that receives the file's content as decoded by `JSONSerialization`.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.json(options)), completionHandler)
    }

    /// Adds a handler that receives the file's content as decoded by `PropertyListSerialization`.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.propertyList(options)), completionHandler)
    }

    /// Adds a handler that receives the file's decoded content.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DownloadResponse<Value>) -> Void
    ) -> Self {
        translatingErrors().addResponseHandler(
            queue, DownloadResponseSerializer(of: CurlewCore.Serializers.decodable(type, decoder)), completionHandler)
    }

    /// Returns a task for the file's URL.
    public func serializingURL() -> DownloadTask<URL> {
        DownloadTask(request: translatingErrors(), serializer: .url)
    }

    /// Returns a task for the file's content.
    public func serializingData() -> DownloadTask<Data> {
        DownloadTask(request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.data))
    }

    /// Returns a task for the file's content as text, in the given encoding, else in that of the response.
    public func serializingString(encoding: String.Encoding? = nil) -> DownloadTask<String> {
        DownloadTask(request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.string(encoding)))
    }

    /// Returns a task for the file's decoded content.
    public func serializingDecodable<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) -> DownloadTask<Value> {
        DownloadTask(
            request: translatingErrors(), serializer: DownloadResponseSerializer(of: CurlewCore.Serializers.decodable(type, decoder)))
    }

    /// Returns a task for the value that a custom serializer makes of the response.
    public func serializingResponse<Value: Sendable>(using serializer: DownloadResponseSerializer<Value>) -> DownloadTask<Value> {
        DownloadTask(request: translatingErrors(), serializer: serializer)
    }
}
