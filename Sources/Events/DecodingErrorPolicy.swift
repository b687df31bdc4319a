// SPDX-License-Identifier: Apache-2.0

/// What a sequence of typed events or lines does about one that can't be decoded.
public enum DecodingErrorPolicy: Sendable {
    /// The iterator throws the error, which ends a `for try await`. Its next call continues with the next event or line.
    case `throw`
    /// The event or line is skipped. The closure, if there is one, is called with the error by the task that iterates.
    case skip((@Sendable (any Error) -> Void)? = nil)
}

extension DecodingErrorPolicy {
    /// Returns the decoded value; `nil` for one that is skipped.
    func value<Value>(_ decode: () throws -> Value) throws -> Value? {
        do {
            return try decode()
        } catch {
            guard case .skip(let notice) = self else { throw error }
            notice?(error)
            return nil
        }
    }
}
