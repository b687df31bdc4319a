// SPDX-License-Identifier: Apache-2.0

/// The links of a server's listing of a folder, which is a page of HTML.
enum ListingLinks {
    /// Returns the values of `href` of the elements `a`, in their order. What is no valid HTML is read as far as it makes sense.
    static func links(of page: String) -> [String] {
        var links: [String] = []
        var rest = page[...]
        while let open = rest.firstScalarRange(of: "<") {
            rest = rest[open.upperBound...]
            if rest.hasBytePrefix("!--") {
                guard let end = rest.firstScalarRange(of: "-->") else { break }
                rest = rest[end.upperBound...]
                continue
            }
            let name = rest.prefixScalars { !isSpace($0) && $0 != ">" && $0 != "/" }
            rest = rest[name.endIndex...]
            guard name == "a" || name == "A" else { continue }
            while let attribute = attribute(&rest) {
                if attribute.name.lowercased() == "href" {
                    links.append(CharacterReference.resolved(attribute.value.trimmingScalars(while: isSpace)))
                    break
                }
            }
        }
        return links
    }

    /// Reads the next attribute of a tag; `nil` at its end.
    private static func attribute(_ rest: inout Substring) -> (name: Substring, value: Substring)? {
        rest = rest.dropScalars { isSpace($0) || $0 == "/" || $0 == "=" }
        let name = rest.prefixScalars { !isSpace($0) && $0 != "=" && $0 != ">" && $0 != "/" && $0 != "<" }
        guard !name.isEmpty else { return nil }
        rest = rest[name.endIndex...].dropScalars(while: isSpace)
        guard rest.hasBytePrefix("=") else { return (name, "") }
        rest = rest.dropFirstScalars().dropScalars(while: isSpace)
        let quote = rest.unicodeScalars.first.flatMap { $0 == "\"" || $0 == "'" ? $0 : nil }
        if quote != nil { rest = rest.dropFirstScalars() }
        let value = rest.prefixScalars { scalar in quote.map { scalar != $0 } ?? (!isSpace(scalar) && scalar != ">") }
        rest = rest[value.endIndex...]
        if quote != nil { rest = rest.dropFirstScalars() }
        return (name, value)
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { " \t\r\n\u{0C}".unicodeScalars.contains(scalar) }
}

/// References to characters in XML and HTML, such as `&amp;` and `&#x20;`.
enum CharacterReference {
    private static let known = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"]

    /// The character that a reference names between `&` and `;`; `nil` if it is not known.
    static func character(_ name: Substring) -> String? {
        guard name.hasBytePrefix("#") else { return known[String(name)] }
        let isHexadecimal = name.hasBytePrefix("#x") || name.hasBytePrefix("#X")
        let digits = String(name.dropFirstScalars(isHexadecimal ? 2 : 1))
        return UInt32(digits, radix: isHexadecimal ? 16 : 10).flatMap(Unicode.Scalar.init).map { String($0) }
    }

    /// The text without its references; what is none stays as it is.
    static func resolved(_ text: Substring) -> String {
        var (result, rest) = ("", text)
        while let mark = rest.firstScalarRange(of: "&") {
            result += rest[..<mark.lowerBound]
            rest = rest[mark.upperBound...]
            let name = rest.prefixScalars { $0 != ";" && $0 != "&" }
            if rest[name.endIndex...].hasBytePrefix(";"), let character = character(name) {
                result += character
                rest = rest.suffix(afterScalarAt: name.endIndex)
            } else {
                result += "&"
            }
        }
        return result + rest
    }
}
