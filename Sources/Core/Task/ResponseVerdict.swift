// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// What a response means for its task.
enum ResponseVerdict: Sendable {
    /// It is the answer: its body goes to the request.
    case accept
    /// It is the answer, whose body goes to a file that the session's delegate takes.
    case becomeDownload
    /// Something else is sent first, in the same task; the body is read and dropped.
    indirect case goOn(NextTransfer)
    /// The request fails.
    case refuse(any Error)
}

/// Another transfer of the same task.
struct NextTransfer: Sendable {
    /// Why it comes to that.
    enum Reason: Sendable, Hashable {
        /// The response leads elsewhere.
        case redirect
        /// The same is asked again, in another way: with credentials, from the beginning of a file, on a connection that is trusted now.
        case repetition
    }

    var request: TransferRequest
    let reason: Reason
}

/// A decision about a response that is taken elsewhere while the transfer waits at the head.
///
/// The transfer may be over before the decision, if nothing of it is left to come; then its end waits. A value, so that every order of
/// events can be tried.
struct PendingDecision {
    private enum Stage {
        case none
        case open
        /// The transfer is over, and its end waits for the decision.
        case ended(TransferCompletion)
        /// The decision was taken, and everything is made ready for it; an end that comes meanwhile waits.
        case applying(TransferCompletion?)
    }

    /// What follows from a decision.
    enum Consequence {
        /// The transfer goes on.
        case resume
        /// The transfer was over.
        case end(TransferCompletion)
    }

    private var stage = Stage.none
    /// Counts decisions, so that a late one is known to be late.
    private var number = 0

    /// A decision is asked for; the number by which it is known.
    mutating func begin() -> Int {
        number += 1
        stage = .open
        return number
    }

    /// The transfer is over; `true` if its end may take place now. A failed one needs no decision any more.
    mutating func transferEnded(_ outcome: TransferCompletion) -> Bool {
        switch stage {
        case .none, .ended: return true
        case .applying:
            stage = .applying(outcome)
            return false
        case .open:
            stage = outcome.error == nil ? .ended(outcome) : .none
            return outcome.error != nil
        }
    }

    /// Whether the decision with this number is pending. An answer to an earlier one must have no effect.
    func isAwaited(_ number: Int) -> Bool {
        guard number == self.number else { return false }
        return switch stage {
        case .open, .ended: true
        case .none, .applying: false
        }
    }

    /// The decision was taken; `false` if it came too late, or another one did before.
    mutating func decided(_ number: Int) -> Bool {
        guard number == self.number else { return false }
        switch stage {
        case .none, .applying: return false
        case .open: stage = .applying(nil)
        case .ended(let outcome): stage = .applying(outcome)
        }
        return true
    }

    /// Everything is ready for the consequence of the decision.
    mutating func applied() -> Consequence {
        defer { stage = .none }
        if case .applying(let outcome?) = stage { return .end(outcome) }
        return .resume
    }

    /// Nobody wants the decision any more; the end that waited for it, if one did.
    mutating func abandon() -> TransferCompletion? {
        guard case .ended(let outcome) = stage else { return nil }
        stage = .none
        return outcome
    }
}
