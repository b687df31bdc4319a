// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

// As for data requests; what is serialized is the file, at its destination or where it was written.

extension DownloadRequest {
    /// The response, serialized; the time is that of the call.
    func makeResponse<S: DownloadResponseSerializerProtocol>(_ serializer: S) -> DownloadResponse<S.SerializedObject> {
        let context = context
        let result = serializer.serializeResponse(context.request, context.response, receiver.fileURL, delegate.error)
        return DownloadResponse(
            context: context, temporaryURL: receiver.temporaryURL, destinationURL: receiver.destinationURL, fileURL: receiver.fileURL,
            resumption: .kept(receiver.resumption.resumablePart), result: delivered(result),
            timeline: delegate.timeline(), metrics: delegate.metrics)
    }

    /// Adds a handler that gets the response as it came.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDownloadResponse) -> Void) -> Self {
        addResponseHandler(queue, completionHandler)
    }

    /// The same by a name that no other module uses.
    package func addResponseHandler(
        _ queue: DispatchQueue?, _ completionHandler: @escaping @Sendable (DefaultDownloadResponse) -> Void
    ) -> Self {
        addHandler { [self] in
            let response = DefaultDownloadResponse(
                context: context, temporaryURL: receiver.temporaryURL, destinationURL: receiver.destinationURL,
                resumption: .kept(receiver.resumption.resumablePart), error: delegate.error, timeline: delegate.timeline(),
                metrics: delegate.metrics)
            (queue ?? session.configuration.callbackQueue).async { completionHandler(response) }
        }
        return self
    }

    /// Adds a handler that gets the response serialized by a serializer of one's own.
    @preconcurrency @discardableResult
    public func response<S: DownloadResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DownloadResponse<S.SerializedObject>) -> Void
    ) -> Self {
        addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// The same by a name that no other module uses.
    package func addResponseHandler<S: DownloadResponseSerializerProtocol>(
        _ queue: DispatchQueue?, _ responseSerializer: S,
        _ completionHandler: @escaping @Sendable (DownloadResponse<S.SerializedObject>) -> Void
    ) -> Self {
        addHandler { [self] in
            let response = HandedOver(value: makeResponse(responseSerializer))
            (queue ?? session.configuration.callbackQueue).async { completionHandler(response.value) }
        }
        return self
    }

    // MARK: File

    /// Adds a handler that gets the file's URL.
    @preconcurrency @discardableResult
    public func responseURL(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<URL>) -> Void) -> Self {
        response(queue: queue, responseSerializer: .url, completionHandler: completionHandler)
    }

    // MARK: Data

    /// Adds a handler that gets the file's content.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .data, completionHandler: completionHandler)
    }

    // MARK: String

    /// Adds a handler that gets the file's content as text.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .string(encoding: encoding), completionHandler: completionHandler)
    }

    // MARK: JSON

    /// Adds a handler that gets what `JSONSerialization` makes of the file's content.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .json(options: options), completionHandler: completionHandler)
    }

    // MARK: Property list

    /// Adds a handler that gets what `PropertyListSerialization` makes of the file's content.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DownloadResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue, responseSerializer: .propertyList(options: options), completionHandler: completionHandler)
    }

    // MARK: Decodable

    /// Adds a handler that gets the file's content decoded.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DownloadResponse<Value>) -> Void
    ) -> Self {
        response(
            queue: queue, responseSerializer: .decodable(of: type, decoder: decoder),
            completionHandler: completionHandler)
    }
}
