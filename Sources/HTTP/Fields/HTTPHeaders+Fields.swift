// SPDX-License-Identifier: Apache-2.0

// What the typed fields share. Each has its own file; all of them are `nil` or empty without the field, and for one that does not parse.

extension HTTPHeaders {
    /// The members of all lines of a field that is a list; none if it does not parse, as it is ignored as a whole (RFC 9651, section 4.2).
    package func structuredList(_ name: String) -> [StructuredFields.Member] {
        value(for: name).flatMap { try? StructuredFields.list(from: $0) } ?? []
    }

    /// Replaces all fields of that name; `nil` and an empty text remove them.
    package mutating func set(_ name: String, to text: String?) {
        self[name] = text.flatMap { $0.isEmpty ? nil : $0 }
    }
}

// MARK: - Dates

extension HTTPHeaders {
    /// When the resource is expected to become unresponsive: `Sunset` (RFC 8594).
    ///
    /// A date in the past means that it may be at any time. `nil` for a field that is no date of HTTP (RFC 9110, section 5.6.7).
    public var sunset: Date? {
        get { value(for: "Sunset").flatMap { HTTPDate.date(from: $0) } }
        set { set("Sunset", to: newValue.flatMap { HTTPDate.text(of: $0) }) }
    }

    /// When the resource became deprecated or will be: `Deprecation` (RFC 9745), a date such as `@1688169599`.
    ///
    /// ``links`` with the relation type `deprecation` lead to more about it, and ``sunset`` is not before it. `nil` for `true` and the dates
    /// of earlier drafts.
    public var deprecation: Date? {
        get {
            guard let text = value(for: "Deprecation"), case .date(let seconds)? = try? StructuredFields.item(from: text).value else {
                return nil
            }
            return Date(timeIntervalSince1970: Double(seconds))
        }
        set {
            let seconds = newValue.flatMap { Int(exactly: $0.timeIntervalSince1970.rounded()) }
            set("Deprecation", to: seconds.flatMap { try? StructuredFields.text(of: .init(.date($0))) })
        }
    }
}
