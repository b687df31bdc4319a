// SPDX-License-Identifier: Apache-2.0

/// Returns an `XMLParser` for the body; set its delegate and run it.
///
/// It resolves no external entities, so that a document can't cause files or other servers to be read. A document with more than 10,000
/// attributes of an element, on which it would spend minutes, is rejected.
public struct XMLParserResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and `application/xml` and `text/xml`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/xml", "text/xml"])

    /// Creates a serializer.
    public init() {}

    /// Returns the parser.
    ///
    /// - Throws: ``OperationError/invalidXML(reason:)`` for too many attributes.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        if let excess = XMLBounds.excess(in: data) { throw OperationError.invalidXML(reason: excess) }
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        return parser
    }
}

/// Parses the body as an `XMLDocument`.
///
/// A document with a document type declaration is rejected: its entities could expand without bound, or cause files to be read. So is one with
/// more than 10,000 attributes of an element.
public struct XMLDocumentResponseSerializer: ResponseSerialization {
    /// Accepts the statuses 200 to 299, and `application/xml` and `text/xml`.
    public var acceptance = ResponseAcceptance(contentTypes: ["application/xml", "text/xml"])
    /// Options of `XMLNode`; none by default.
    public var options: XMLNode.Options

    /// Creates a serializer.
    public init(options: XMLNode.Options = []) {
        self.options = options
    }

    /// Returns the document.
    ///
    /// - Throws: ``OperationError/invalidXML(reason:)``.
    public func object(of data: Data, in response: HTTPURLResponse?) throws -> Any? {
        // Zeros are removed to find the declaration in UTF-16 and UTF-32, too.
        guard Data(data.filter { $0 != 0 }).range(of: Data("<!DOCTYPE".utf8)) == nil else {
            throw OperationError.invalidXML(reason: "it has a document type declaration")
        }
        if let excess = XMLBounds.excess(in: data) { throw OperationError.invalidXML(reason: excess) }
        // Foundation on Linux accepts a truncated document, and crashes on one without an element.
        try XMLBalance().check(data)
        return try XMLDocument(data: data, options: options)
    }
}

/// Checks that all elements of a document are closed.
private final class XMLBalance: NSObject, XMLParserDelegate {
    private var depth = 0
    private var count = 0

    func check(_ data: Data) throws {
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        parser.delegate = self
        guard parser.parse(), parser.parserError == nil else {
            throw OperationError.invalidXML(reason: parser.parserError.map { "\($0)" } ?? "the parser reports no reason")
        }
        guard depth == 0, count > 0 else { throw OperationError.invalidXML(reason: count == 0 ? "it has no element" : "it is truncated") }
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
