// SPDX-License-Identifier: Apache-2.0

/// An error with a kind of its own, for what observes requests: the value of `error.type` in OpenTelemetry's conventions.
package protocol ErrorWithKind: Error {
    /// What kind of error it is: one of few values, the same in each process.
    var errorKind: String { get }
}

extension Error {
    /// The kind of the error, without a text of it: one of few values. For errors of other libraries the name of their type.
    package var kindName: String {
        if let error = self as? any ErrorWithKind { return error.errorKind }
        if self is CancellationError { return "cancelled" }
        // A private type has the address of its context in its name, which differs from process to process.
        return String(reflecting: type(of: self)).split(separator: ".").filter { !$0.hasPrefix("(") }.joined(separator: ".")
    }

    /// The error's text if it is Curlew's own throughout, and so redacted; `nil` for errors of other libraries, and for those that have one
    /// inside: their texts may have secrets.
    package var ownText: String? {
        guard let error = self as? CurlewError, error.underlyingError == nil else { return nil }
        return "\(error)"
    }
}

extension CurlewError: ErrorWithKind {
    /// The kind of a transfer's failure, or the name of the case.
    package var errorKind: String {
        if case .transferFailed(let failure) = self { failure.kind.rawValue } else { name }
    }
}
