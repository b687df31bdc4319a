// SPDX-License-Identifier: Apache-2.0

/// Returns the body as `Data`, of any content type; empty if the response has none.
public struct HTTPResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and any content type.
    public var acceptance = ResponseAcceptance()

    /// Creates a serializer.
    public init() {}

    /// Returns the body.
    public func object(of data: Data, in response: HTTPURLResponse?) -> Any? { data }

    /// Validates the response and returns the body: empty `Data` for an empty body, `nil` only if it was written elsewhere.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        let rejection = acceptance.rejection(of: response, data)
        let hasWrongType = (rejection as? URLError)?.code == .cannotDecodeContentData
        return SerializedResponse(object: hasWrongType ? nil : data, error: rejection)
    }
}

/// Decodes the body with `JSONSerialization` (RFC 8259); `nil` for a single space, which some servers send as an empty response.
public struct JSONResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and `application/json`, `text/json` and `text/javascript`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/json", "text/json", "text/javascript"])
    /// Options of `JSONSerialization`; none by default, so that the top level has to be an object or an array.
    public var readingOptions: JSONSerialization.ReadingOptions = []
    /// Whether members whose value is `null` are removed from objects, at all levels; `false` by default.
    public var removesKeysWithNullValues = false

    /// Creates a serializer.
    public init(readingOptions: JSONSerialization.ReadingOptions = []) {
        self.readingOptions = readingOptions
    }

    /// Returns the value, decoded in the response's charset.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        if data == Data(" ".utf8) { return nil }
        let serializer = DataResponseSerializer.json(options: readingOptions)
        let object = try serializer.serializeResponse(nil, nil, utf8(data, of: response), nil).get()
        return removesKeysWithNullValues ? withoutNull(object) : object
    }

    /// `JSONSerialization` detects the Unicode encodings itself and supports no other, so other charsets are converted to UTF-8.
    private func utf8(_ data: Data, of response: HTTPURLResponse?) -> Data {
        let body = EncodedText(data, contentType: response?.value(forHTTPHeaderField: "Content-Type"))
        guard body.encoding != .utf8, let text = body.text else { return data }
        return Data(text.utf8)
    }

    private func withoutNull(_ object: Any) -> Any {
        switch object {
        case let array as [Any]: array.map { withoutNull($0) }
        case let dictionary as [String: Any]: dictionary.filter { !($0.value is NSNull) }.mapValues { withoutNull($0) }
        default: object
        }
    }
}

/// Decodes the body with `PropertyListSerialization`.
public struct PropertyListResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and `application/x-plist`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/x-plist"])
    /// Options of `PropertyListSerialization`; none by default.
    public var readOptions: PropertyListSerialization.ReadOptions = []

    /// Creates a serializer.
    public init(readOptions: PropertyListSerialization.ReadOptions = []) {
        self.readOptions = readOptions
    }

    /// Returns the value.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        try DataResponseSerializer.propertyList(options: readOptions).serializeResponse(nil, nil, data, nil).get()
    }
}

/// Returns an ``ImageHeader``: the image's format and size, without decoding it.
public struct ImageResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and the types of the supported image formats.
    public var acceptance = ResponseAcceptance(contentTypes: [
        "image/png", "image/jpeg", "image/gif", "image/bmp", "image/x-bmp", "image/x-ms-bmp", "image/webp", "image/tiff", "image/ico",
        "image/x-icon", "image/vnd.microsoft.icon", "image/x-win-bitmap",
    ])

    /// Creates a serializer.
    public init() {}

    /// Returns the header, with the body.
    ///
    /// - Throws: ``OperationError/imageNotRecognised``.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        guard let header = ImageHeader(data) else { throw OperationError.imageNotRecognised }
        return header
    }
}

/// Tries several serializers in order and returns the first result that has a value and no error.
public struct CompoundResponseSerializer: ResponseSerialization {
    /// The responses accepted if none of the serializers returns a value: then the body is the object.
    public var acceptance = ResponseAcceptance()
    /// The serializers, in the order in which they are tried.
    public let serializers: [any ResponseSerialization]

    /// Creates a serializer from others.
    public init(_ serializers: [any ResponseSerialization]) {
        self.serializers = serializers
    }

    /// Returns the body.
    public func object(of data: Data, in response: HTTPURLResponse?) -> Any? { data }

    /// Returns the result of the first serializer that succeeds; otherwise validates the response itself and returns the body.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        for serializer in serializers {
            let result = serializer.serialize(response, data)
            if result.object != nil, result.error == nil { return result }
        }
        guard acceptance.rejection(of: response, data) == nil else {
            return HTTPResponseSerializer().serialize(response, data, accepting: acceptance)
        }
        return SerializedResponse(object: data)
    }
}

extension HTTPResponseSerializer {
    fileprivate func serialize(
        _ response: HTTPURLResponse?, _ data: Data?, accepting acceptance: ResponseAcceptance
    ) -> SerializedResponse {
        var serializer = self
        serializer.acceptance = acceptance
        return serializer.serialize(response, data)
    }
}
