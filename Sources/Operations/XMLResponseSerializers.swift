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
        // Without the zeros of UTF-16 and UTF-32.
        guard Data(data.filter { $0 != 0 }).range(of: Data("<!DOCTYPE".utf8)) == nil else {
            throw OperationError.invalidXML(reason: "it has a document type")
        }
        // On Linux Foundation takes a document that is cut off for a whole one, and ends the program over one without an element.
        try XMLBalance().check(data)
        return try XMLDocument(data: data, options: options)
    }
}

/// Finds out whether a document's elements end.
private final class XMLBalance: NSObject, XMLParserDelegate {
    private var depth = 0
    private var count = 0

    func check(_ data: Data) throws {
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        parser.delegate = self
        guard parser.parse(), parser.parserError == nil else {
            throw OperationError.invalidXML(reason: parser.parserError.map { "\($0)" } ?? "it can't be read")
        }
        guard depth == 0, count > 0 else { throw OperationError.invalidXML(reason: count == 0 ? "it has no element" : "it is cut off") }
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        depth += 1
        count += 1
    }

    func parser(_ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?) {
        depth -= 1
    }
}
