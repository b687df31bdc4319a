// SPDX-License-Identifier: Apache-2.0
import Foundation

#if canImport(FoundationXML)
import FoundationXML
#endif

/// The elements of an XML document.
final class Elements: NSObject, XMLParserDelegate {
    private(set) var names: [String] = []
    private(set) var rows = 0
    private(set) var isWellFormed = false

    init(_ text: String) {
        super.init()
        let parser = XMLParser(data: Data(text.utf8))
        parser.delegate = self
        isWellFormed = parser.parse()
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String] = [:]
    ) {
        names.append(name)
        if attributes["class"] == "row" { rows += 1 }
    }
}
