// SPDX-License-Identifier: Apache-2.0

/// Gives an `XMLParser` on the body, to be given a delegate and run.
///
/// It resolves no external entities, so that a document can't have files or other servers read.
public struct XMLParserResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, `application/xml` and `text/xml`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/xml", "text/xml"])

    /// Makes a serializer.
    public init() {}

    /// The parser.
    public func object(of data: Data, in response: HTTPURLResponse?) -> Any? {
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        return parser
    }
}

/// Gives an `XMLDocument` of the body.
///
/// A document with a document type is refused: what that declares could grow beyond all bounds, or have files read.
public struct XMLDocumentResponseSerializer: ResponseSerialization {
    /// What is acceptable: the statuses 200 to 299, `application/xml` and `text/xml`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/xml", "text/xml"])
    /// Options of `XMLNode`; none by default.
    public var options: XMLNode.Options

    /// Makes a serializer.
    public init(options: XMLNode.Options = []) {
        self.options = options
    }

    /// The document.
    ///
    /// - Throws: ``OperationError/invalidXML(reason:)``.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        guard data.range(of: Data("<!DOCTYPE".utf8)) == nil else { throw OperationError.invalidXML(reason: "It has a document type.") }
        // Foundation on Linux ends the program over some malformed documents; its parser says so first.
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        guard parser.parse() else {
            throw OperationError.invalidXML(reason: parser.parserError.map { "\($0.localizedDescription)" } ?? "It can't be read.")
        }
        return try XMLDocument(data: data, options: options)
    }
}
