// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

// Handlers run when the request is over, in the order in which they were added, also when it is over already. Serializers run on the
// request's own queue; only the completion handler runs on `queue`, by default the session's callback queue, which is `.main`.

/// A value on its way from the request's queue to the handler's.
struct HandedOver<Value>: @unchecked Sendable {  // made on one queue, used on the other, by nobody else
    let value: Value
}

extension DataRequest {
    /// The response, serialized; the time is that of the call.
    func makeResponse<S: DataResponseSerializerProtocol>(_ serializer: S) -> DataResponse<S.SerializedObject> {
        if let serializer = serializer as? DataResponseSerializer<S.SerializedObject> { return makeResponse(serializer) }
        let context = context
        return makeResponse(context, serializer.serializeResponse(context.request, context.response, delegate.data, delegate.error))
    }

    /// The same for a serializer that may need no more than the head.
    func makeResponse<Value>(_ serializer: DataResponseSerializer<Value>) -> DataResponse<Value> {
        makeResponse(context, Result { try makeValue(serializer) })
    }

    /// What a serializer makes of the response, for those who want nothing else of it.
    ///
    /// Throws rather than returns a result: generic code that is not specialised looks up that type for each request.
    func makeValue<Value>(_ serializer: DataResponseSerializer<Value>) throws -> Value {
        guard let serializeBody = serializer.serializeBody else { return try makeValueOfContext(serializer) }
        let (error, head) = driver.state.withLock { ($0.attempt.error, $0.attempt.head) }
        if let error { throw error }
        return try serializeBody(head, delegate.data)
    }

    /// The same for a serializer that needs Foundation's objects. Not inlined, because the caller would look up the type of the result as well.
    @inline(never)
    private func makeValueOfContext<Value>(_ serializer: DataResponseSerializer<Value>) throws -> Value {
        let context = context
        return try serializer.serializeResponse(context.request, context.response, delegate.data, delegate.error).get()
    }

    private func makeResponse<Value>(_ context: ResponseContext, _ result: Result<Value, any Error>) -> DataResponse<Value> {
        DataResponse(
            context: context, data: delegate.data, result: delivered(result), timeline: delegate.timeline(),
            metrics: delegate.metrics)
    }

    /// Adds a handler that gets the response as it came.
    @preconcurrency @discardableResult
    public func response(queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void) -> Self {
        addResponseHandler(queue, completionHandler)
    }

    /// The same by a name that no other module uses.
    package func addResponseHandler(_ queue: DispatchQueue?, _ completionHandler: @escaping @Sendable (DefaultDataResponse) -> Void) -> Self
    {
        addHandler { [self] in
            let response = DefaultDataResponse(
                context: context, data: delegate.data, error: delegate.error, timeline: delegate.timeline(), metrics: delegate.metrics)
            (queue ?? session.configuration.callbackQueue).async { completionHandler(response) }
        }
        return self
    }

    /// Adds a handler that gets the response serialized by a serializer of one's own.
    @preconcurrency @discardableResult
    public func response<S: DataResponseSerializerProtocol>(
        queue: DispatchQueue? = nil, responseSerializer: S,
        completionHandler: @escaping @Sendable (DataResponse<S.SerializedObject>) -> Void
    ) -> Self {
        addResponseHandler(queue, responseSerializer, completionHandler)
    }

    /// The same by a name that no other module uses.
    package func addResponseHandler<S: DataResponseSerializerProtocol>(
        _ queue: DispatchQueue?, _ responseSerializer: S,
        _ completionHandler: @escaping @Sendable (DataResponse<S.SerializedObject>) -> Void
    ) -> Self {
        addHandler { [self] in
            let response = HandedOver(value: makeResponse(responseSerializer))
            (queue ?? session.configuration.callbackQueue).async { completionHandler(response.value) }
        }
        return self
    }

    // MARK: Data

    /// Adds a handler that gets the body.
    @preconcurrency @discardableResult
    public func responseData(
        queue: DispatchQueue? = nil, completionHandler: @escaping @Sendable (DataResponse<Data>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .data, completionHandler: completionHandler)
    }

    // MARK: String

    /// Adds a handler that gets the body as text, in the given encoding, else in that of the response.
    @preconcurrency @discardableResult
    public func responseString(
        queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
        completionHandler: @escaping @Sendable (DataResponse<String>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .string(encoding: encoding), completionHandler: completionHandler)
    }

    // MARK: JSON

    /// Adds a handler that gets what `JSONSerialization` makes of the body.
    @preconcurrency @discardableResult
    public func responseJSON(
        queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        response(queue: queue, responseSerializer: .json(options: options), completionHandler: completionHandler)
    }

    // MARK: Property list

    /// Adds a handler that gets what `PropertyListSerialization` makes of the body.
    @preconcurrency @discardableResult
    public func responsePropertyList(
        queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
        completionHandler: @escaping @Sendable (DataResponse<Any>) -> Void
    ) -> Self {
        response(
            queue: queue, responseSerializer: .propertyList(options: options), completionHandler: completionHandler)
    }

    // MARK: Decodable

    /// Adds a handler that gets the body decoded.
    @preconcurrency @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: DispatchQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        completionHandler: @escaping @Sendable (DataResponse<Value>) -> Void
    ) -> Self {
        response(
            queue: queue, responseSerializer: .decodable(of: type, decoder: decoder),
            completionHandler: completionHandler)
    }
}
