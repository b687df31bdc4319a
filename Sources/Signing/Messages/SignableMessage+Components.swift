// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

extension SignableMessage {
    /// The value of a component as it is signed.
    func value(of component: MessageComponent) throws(MessageSignatureError) -> String {
        if component.parameters["req"] != nil {
            guard component.parameters["req"] == .boolean(true), case .response(_, let request) = kind else {
                throw .unsupportedComponent(component.description)
            }
            guard let request else { throw .missingComponent(component.description) }
            return try request.ownValue(of: component)
        }
        return try ownValue(of: component)
    }

    private func ownValue(of component: MessageComponent) throws(MessageSignatureError) -> String {
        let value = try component.isDerived ? derivedValue(of: component) : fieldValue(of: component)
        guard value.utf8.allSatisfy({ $0 < 0x80 && $0 != 0x0A && $0 != 0x0D }) else { throw .invalidValue(component.description) }
        return value
    }

    // MARK: Derived components

    private func derivedValue(of component: MessageComponent) throws(MessageSignatureError) -> String {
        let allowed: Set = component.name == "@query-param" ? ["req", "name"] : ["req"]
        guard component.parameters.allSatisfy({ allowed.contains($0.key) }) else { throw .unsupportedComponent(component.description) }
        switch (kind, component.name) {
        case (.response(let status, _), "@status"): return String(String(1000 + status).suffix(3))
        case (.request(let method, _, _, _), "@method"): return method
        case (.request(_, let url, let host, let target), let name):
            guard let parts = URLParts(url) else { throw .invalidURL(url) }
            if name == "@query-param" { return try queryParameter(component, of: parts) }
            guard let value = requestValue(name, parts, host: host, target: target) else {
                throw .unsupportedComponent(component.description)
            }
            return value
        default: throw .unsupportedComponent(component.description)
        }
    }

    private func requestValue(_ name: String, _ parts: URLParts, host: String?, target: String?) -> String? {
        let resource = parts.path + (parts.query.map { "?\($0)" } ?? "")
        switch name {
        case "@target-uri": return "\(parts.scheme)://\(authority(parts, host))\(resource)"
        case "@authority": return authority(parts, host)
        case "@scheme": return parts.scheme
        case "@request-target": return target ?? resource
        case "@path": return parts.path
        case "@query": return "?\(parts.query ?? "")"
        default: return nil
        }
    }

    /// The host and port, normalized (RFC 9110, section 4.2.3).
    private func authority(_ parts: URLParts, _ host: String?) -> String {
        (host.flatMap { URLParts("\(parts.scheme)://\($0)/")?.host } ?? parts.host).lowercased()
    }

    private func queryParameter(_ component: MessageComponent, of parts: URLParts) throws(MessageSignatureError) -> String {
        guard case .string(let name)? = component.parameters["name"] else { throw .unsupportedComponent(component.description) }
        let items = QueryItem.all(in: parts.query ?? "").filter { $0.name.hasSameBytes(as: name) }
        guard let item = items.first else { throw .missingComponent(component.description) }
        guard items.count == 1 else { throw .invalidValue(component.description) }
        return item.value
    }

    // MARK: Fields

    private func fieldValue(of component: MessageComponent) throws(MessageSignatureError) -> String {
        let parameters = component.parameters
        for parameter in parameters {
            switch (parameter.key, parameter.value) {
            case ("sf", .boolean(true)), ("bs", .boolean(true)), ("tr", .boolean(true)), ("req", _), ("key", .string): continue
            default: throw .unsupportedComponent(component.description)
            }
        }
        guard HTTPToken.isToken(component.name), component.name.hasSameBytes(as: component.name.lowercased()),
            parameters["bs"] == nil || (parameters["sf"] == nil && parameters["key"] == nil)
        else { throw .unsupportedComponent(component.description) }
        let lines = (parameters["tr"] == nil ? headers : trailers).values(for: component.name).map(Self.unfolded)
        guard !lines.isEmpty else { throw .missingComponent(component.description) }
        if parameters["bs"] != nil {
            let items = lines.map { StructuredFields.Member.item(.init(.bytes(Data($0.utf8)))) }
            guard let text = try? StructuredFields.text(of: items) else { throw .invalidValue(component.description) }
            return text
        }
        let joined = lines.joined(separator: ", ")
        if case .string(let key)? = parameters["key"] { return try member(key, of: joined, component) }
        guard parameters["sf"] != nil else { return joined }
        guard let text = Self.structured(joined) else { throw .invalidValue(component.description) }
        return text
    }

    /// A line without blanks at its ends, and with a space in place of an obsolete line folding.
    private static func unfolded(_ line: String) -> String {
        guard line.utf8.contains(0x0A) else { return String(line.trimmingBlanks) }
        let lines = line.splitScalars(separator: "\n", omittingEmptySubsequences: false)
        let folded = lines.dropFirst().allSatisfy { $0.utf8.first?.isBlank == true }
        guard folded else { return line }
        return String(lines.map { $0.trimmingScalars { $0 == "\r" || $0 == " " || $0 == "\t" } }.joined(separator: " ").trimmingBlanks)
    }

    private func member(_ key: String, of text: String, _ component: MessageComponent) throws(MessageSignatureError) -> String {
        guard let members = try? StructuredFields.dictionary(from: text) else { throw .invalidValue(component.description) }
        guard let member = members[key] else { throw .missingComponent(component.description) }
        guard let value = try? StructuredFields.text(of: [member]) else { throw .invalidValue(component.description) }
        return value
    }

    /// The canonical form of a structured field; `nil` if the text is none, or if the form depends on the field's type, which is unknown.
    private static func structured(_ text: String) -> String? {
        let forms: [String?] = [
            (try? StructuredFields.dictionary(from: text)).flatMap { try? StructuredFields.text(of: $0) },
            (try? StructuredFields.list(from: text)).flatMap { try? StructuredFields.text(of: $0) },
            (try? StructuredFields.item(from: text)).flatMap { try? StructuredFields.text(of: $0) },
        ]
        let distinct = Set(forms.compactMap(\.self).map { Array($0.utf8) })
        return distinct.count == 1 ? forms.compactMap(\.self).first : nil
    }
}
