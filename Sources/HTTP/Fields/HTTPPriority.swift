// SPDX-License-Identifier: Apache-2.0

/// The field `Priority` (RFC 9218), of a request or a response: ``HTTPHeaders/priority``.
///
/// In a response, a parameter that is `nil` leaves what the client has asked for unchanged (section 8).
public struct HTTPPriority: Sendable, Hashable {
    /// The urgency, from 0, the most urgent, to 7 (section 4.1); clamped when it is written. `nil` if it is not given: 3 in a request.
    public var urgency: Int?
    /// Whether the response is of use before it is complete (section 4.2). `nil` if it is not given: no in a request.
    public var isIncremental: Bool?

    /// Creates a priority.
    public init(urgency: Int? = nil, isIncremental: Bool? = nil) {
        self.urgency = urgency
        self.isIncremental = isIncremental
    }

    /// Parameters that are unknown, out of range, or of another type are ignored (section 4).
    fileprivate init(_ dictionary: StructuredFields.Dictionary) {
        if case .item(let item)? = dictionary["u"], case .integer(let urgency) = item.value, (0...7).contains(urgency) {
            self.urgency = urgency
        }
        if case .item(let item)? = dictionary["i"], case .boolean(let flag) = item.value { isIncremental = flag }
    }

    fileprivate var dictionary: StructuredFields.Dictionary {
        var dictionary: StructuredFields.Dictionary = [:]
        if let urgency { dictionary["u"] = .item(.init(.integer(min(max(urgency, 0), 7)))) }
        if let isIncremental { dictionary["i"] = .item(.init(.boolean(isIncremental))) }
        return dictionary
    }
}

extension HTTPHeaders {
    /// `Priority` (RFC 9218). `nil` without the field, or if it does not parse.
    ///
    /// ``/CurlewCore/RequestOptions/priority`` sets the urgency of a request, and the order in which requests get a connection.
    public var priority: HTTPPriority? {
        get { value(for: "Priority").flatMap { try? StructuredFields.dictionary(from: $0) }.map { HTTPPriority($0) } }
        set { set("Priority", to: newValue.flatMap { try? StructuredFields.text(of: $0.dictionary) }) }
    }
}
