// SPDX-License-Identifier: Apache-2.0

/// Gives the body as `Data`, of whatever type; empty where the response has none.
public struct HTTPResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, any type.
    public var acceptance = ResponseAcceptance()

    /// Makes a serializer.
    public init() {}

    /// The body.
    public func object(of data: Data, in response: HTTPURLResponse?) -> Any? { data }

    /// Judges the response and gives the body: empty `Data` for an empty one, `nil` only where it went elsewhere.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        let refusal = acceptance.refusal(of: response, data)
        let isOfWrongType = (refusal as? URLError)?.code == .cannotDecodeContentData
        return SerializedResponse(object: isOfWrongType ? nil : data, error: refusal)
    }
}

/// Gives what `JSONSerialization` makes of the body (RFC 8259); `nil` for a body of a single space, with which some servers say nothing.
public struct JSONResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, `application/json`, `text/json` and `text/javascript`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/json", "text/json", "text/javascript"])
    /// Options of `JSONSerialization`; none by default, so that the top level is an object or an array.
    public var readingOptions: JSONSerialization.ReadingOptions = []
    /// Whether members with the value `null` are left out of objects, at all depths; `false` by default.
    public var removesKeysWithNullValues = false

    /// Makes a serializer.
    public init(readingOptions: JSONSerialization.ReadingOptions = []) {
        self.readingOptions = readingOptions
    }

    /// The value, read in the response's charset.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        if data == Data(" ".utf8) { return nil }
        let serializer = DataRequest.jsonResponseSerializer(options: readingOptions)
        let object = try serializer.serializeResponse(nil, nil, utf8(data, of: response), nil).get()
        return removesKeysWithNullValues ? withoutNull(object) : object
    }

    /// `JSONSerialization` finds out the encodings of Unicode by itself, and knows no other.
    private func utf8(_ data: Data, of response: HTTPURLResponse?) -> Data {
        let encoding = response?.value(forHTTPHeaderField: "Content-Type").flatMap { String.Encoding(contentType: $0) }
        guard let encoding, encoding != .utf8, let text = String(data: data, encoding: encoding) else { return data }
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

/// Gives what `PropertyListSerialization` makes of the body.
public struct PropertyListResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, `application/x-plist`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/x-plist"])
    /// Options of `PropertyListSerialization`; none by default.
    public var readOptions: PropertyListSerialization.ReadOptions = []

    /// Makes a serializer.
    public init(readOptions: PropertyListSerialization.ReadOptions = []) {
        self.readOptions = readOptions
    }

    /// The value.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        try DataRequest.propertyListResponseSerializer(options: readOptions).serializeResponse(nil, nil, data, nil).get()
    }
}

/// Gives an ``ImageHeader``: what kind of an image the body is, and how large, without decoding it.
public struct ImageResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, the types of images that are known.
    public var acceptance = ResponseAcceptance(contentTypes: [
        "image/png", "image/jpeg", "image/gif", "image/bmp", "image/x-bmp", "image/x-ms-bmp", "image/webp", "image/tiff", "image/ico",
        "image/x-icon", "image/vnd.microsoft.icon", "image/x-win-bitmap",
    ])

    /// Makes a serializer.
    public init() {}

    /// The header, with the body.
    ///
    /// - Throws: ``OperationError/imageNotRecognised``.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        guard let header = ImageHeader(data) else { throw OperationError.imageNotRecognised }
        return header
    }
}

/// Has several serializers try, one after the other: the first that makes something of the response without an error.
public struct CompoundResponseSerializer: ResponseSerialization {
    /// What is acceptable if none of the serializers makes anything: then the body is the object.
    public var acceptance = ResponseAcceptance()
    /// Those that try, in this order.
    public let serializers: [any ResponseSerialization]

    /// Makes a serializer of serializers.
    public init(_ serializers: [any ResponseSerialization]) {
        self.serializers = serializers
    }

    /// The body.
    public func object(of data: Data, in response: HTTPURLResponse?) -> Any? { data }

    /// What the first serializer makes that can; else judges the response itself.
    public func serialize(_ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        for serializer in serializers {
            let result = serializer.serialize(response, data)
            if result.object != nil, result.error == nil { return result }
        }
        guard acceptance.refusal(of: response, data) == nil else { return HTTPResponseSerializer().judged(by: acceptance, response, data) }
        return SerializedResponse(object: data)
    }
}

extension HTTPResponseSerializer {
    fileprivate func judged(by acceptance: ResponseAcceptance, _ response: HTTPURLResponse?, _ data: Data?) -> SerializedResponse {
        var serializer = self
        serializer.acceptance = acceptance
        return serializer.serialize(response, data)
    }
}
