// SPDX-License-Identifier: Apache-2.0

// What types show of themselves, declared once: a public type that conforms to one of these protocols has the public property, with
// its conformance to `CustomStringConvertible` or `CustomReflectable`.

/// A type whose description is one line, without secrets.
package protocol LineConvertible: CustomStringConvertible {
    /// The description, in which control characters may still be unescaped.
    var line: String { get }
}

extension LineConvertible {
    /// The value in one line, without secrets: control characters are escaped, credentials are left out or redacted (``Redaction``).
    public var description: String { Redaction.escaped(line) }
}

/// A type whose stored properties may be secret, so that reflection shows nothing else than these parts.
package protocol RedactedReflectable: CustomReflectable {
    /// What reflection shows; nothing by default.
    var shownParts: KeyValuePairs<String, Any> { get }
}

extension RedactedReflectable {
    package var shownParts: KeyValuePairs<String, Any> { [:] }

    /// What may be shown: no secrets, and often nothing beyond the description.
    public var customMirror: Mirror { .redacted(self, shownParts) }
}

/// An enum whose payloads may be secret: reflection shows the case's name and the description.
package protocol RedactedCases: CustomReflectable {
    /// The name of the case; `nil` for a case without a payload.
    var caseName: String? { get }
}

extension RedactedCases {
    /// The description, labeled with the case's name.
    public var customMirror: Mirror { .redacted(self, caseName: caseName) }
}
