// SPDX-License-Identifier: Apache-2.0

/// An archived response serializer of this module.
indirect enum ResponseSerializerArchive: Sendable, Codable {
    case http(ResponseAcceptance)
    case json(ResponseAcceptance, readingOptions: UInt, removesKeysWithNullValues: Bool)
    case propertyList(ResponseAcceptance, readOptions: UInt)
    case image(ResponseAcceptance)
    case xmlParser(ResponseAcceptance)
    case xmlDocument(ResponseAcceptance, options: UInt)
    case compound(ResponseAcceptance, [ResponseSerializerArchive])

    /// `nil` for a serializer of another module, or one composed of such serializers.
    init?(_ serializer: any ResponseSerialization) {
        let acceptance = serializer.acceptance
        switch serializer {
        case is HTTPResponseSerializer: self = .http(acceptance)
        case let json as JSONResponseSerializer:
            self = .json(
                acceptance, readingOptions: json.readingOptions.rawValue, removesKeysWithNullValues: json.removesKeysWithNullValues)
        case let list as PropertyListResponseSerializer: self = .propertyList(acceptance, readOptions: list.readOptions.rawValue)
        case is ImageResponseSerializer: self = .image(acceptance)
        case is XMLParserResponseSerializer: self = .xmlParser(acceptance)
        case let document as XMLDocumentResponseSerializer: self = .xmlDocument(acceptance, options: document.options.rawValue)
        case let compound as CompoundResponseSerializer:
            let parts = compound.serializers.compactMap { ResponseSerializerArchive($0) }
            guard parts.count == compound.serializers.count else { return nil }
            self = .compound(acceptance, parts)
        default: return nil
        }
    }

    var serializer: any ResponseSerialization {
        var (serializer, acceptance) = parts
        serializer.acceptance = acceptance
        return serializer
    }

    /// The serializer with its default acceptance, and the archived acceptance.
    private var parts: (any ResponseSerialization, ResponseAcceptance) {
        switch self {
        case .http(let acceptance): return (HTTPResponseSerializer(), acceptance)
        case .json(let acceptance, let readingOptions, let removesKeysWithNullValues):
            var json = JSONResponseSerializer(readingOptions: .init(rawValue: readingOptions))
            json.removesKeysWithNullValues = removesKeysWithNullValues
            return (json, acceptance)
        case .propertyList(let acceptance, let options):
            return (PropertyListResponseSerializer(readOptions: .init(rawValue: options)), acceptance)
        case .image(let acceptance): return (ImageResponseSerializer(), acceptance)
        case .xmlParser(let acceptance): return (XMLParserResponseSerializer(), acceptance)
        case .xmlDocument(let acceptance, let options):
            return (XMLDocumentResponseSerializer(options: .init(rawValue: options)), acceptance)
        case .compound(let acceptance, let members): return (CompoundResponseSerializer(members.map(\.serializer)), acceptance)
        }
    }
}

/// An archived request serializer of this module, with all its header fields.
struct RequestSerializerArchive: Sendable, Codable {
    enum Kind: Sendable, Codable {
        case http
        case json(writingOptions: UInt)
        case propertyList(format: UInt)
    }

    struct Field: Sendable, Codable {
        let name: String
        let value: String
    }

    let kind: Kind
    let headers: [Field]
    let methodsInURI: Set<String>
    let stringEncoding: UInt
    let allowsCellularAccess: Bool?
    let cachePolicy: UInt?
    let handlesCookies: Bool?
    let timeoutInterval: TimeInterval?

    /// `nil` for a serializer of another class, or one with a closure for queries.
    init?(_ serializer: HTTPRequestSerializer) {
        let settings = serializer.settings.withLock { $0 }
        guard settings.queryStringBlock == nil else { return nil }
        // Compared exactly, since a subclass may behave differently.
        switch ObjectIdentifier(type(of: serializer)) {
        case ObjectIdentifier(HTTPRequestSerializer.self): kind = .http
        case ObjectIdentifier(JSONRequestSerializer.self):
            kind = .json(writingOptions: (serializer as? JSONRequestSerializer)?.writingOptions.rawValue ?? 0)
        case ObjectIdentifier(PropertyListRequestSerializer.self):
            let format = (serializer as? PropertyListRequestSerializer)?.format ?? .xml
            kind = .propertyList(format: format.rawValue)
        default: return nil
        }
        headers = settings.headers.map { Field(name: $0.name, value: $0.value) }
        methodsInURI = settings.methodsInURI
        stringEncoding = settings.stringEncoding.rawValue
        allowsCellularAccess = settings.allowsCellularAccess
        cachePolicy = settings.cachePolicy.map { UInt($0.rawValue) }
        handlesCookies = settings.handlesCookies
        timeoutInterval = settings.timeoutInterval
    }

    var serializer: HTTPRequestSerializer {
        let serializer: HTTPRequestSerializer =
            switch kind {
            case .http: HTTPRequestSerializer()
            case .json(let options): JSONRequestSerializer(writingOptions: .init(rawValue: options))
            case .propertyList(let format): PropertyListRequestSerializer(format: .init(rawValue: format) ?? .xml)
            }
        let settings = HTTPRequestSerializer.Settings(
            headers: HTTPHeaders(headers.map { HTTPHeader(name: $0.name, value: $0.value) }), methodsInURI: methodsInURI,
            stringEncoding: String.Encoding(rawValue: stringEncoding), allowsCellularAccess: allowsCellularAccess,
            cachePolicy: cachePolicy.flatMap { .init(rawValue: .init($0)) }, handlesCookies: handlesCookies,
            timeoutInterval: timeoutInterval)
        serializer.settings.withLock { $0 = settings }
        return serializer
    }
}
