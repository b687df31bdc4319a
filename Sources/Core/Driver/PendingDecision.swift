// SPDX-License-Identifier: Apache-2.0
import CurlewTransport

/// A decision about a response that is taken on the session's queue while the transfer waits at its head.
///
/// A response without further bytes completes before its decision; then the completion waits. A value, so that every order of events can be
/// tested.
struct PendingDecision {
    private enum Stage {
        case none
        case open
        /// The transfer has completed, and its completion waits for the decision.
        case completed(TransferCompletion)
        /// The decision was taken and is being applied; the completion of the transfer waits for that.
        case applying(TransferCompletion?)
    }

    /// What to do when a decision was applied.
    enum Action {
        /// The transfer is resumed.
        case resume
        /// The transfer had completed.
        case complete(TransferCompletion)
    }

    private var stage = Stage.none
    /// Counts decisions, so that a late one is recognized.
    private var number = 0

    /// Begins a decision; returns the number that identifies it.
    mutating func begin() -> Int {
        number += 1
        stage = .open
        return number
    }

    /// Begins applying an acceptance, on the session's queue.
    mutating func beginApplying() {
        number += 1
        stage = .applying(nil)
    }

    /// The transfer has completed; returns `true` if its completion needs to wait for nothing. A failed one needs no decision any more.
    mutating func transferCompleted(_ outcome: TransferCompletion) -> Bool {
        switch stage {
        case .none, .completed: return true
        case .applying:
            stage = .applying(outcome)
            return false
        case .open:
            stage = outcome.error == nil ? .completed(outcome) : .none
            return outcome.error != nil
        }
    }

    /// Whether the decision with this number is pending.
    func isPending(_ number: Int) -> Bool {
        guard number == self.number else { return false }
        return switch stage {
        case .open, .completed: true
        case .none, .applying: false
        }
    }

    /// Whether a decision is pending or being applied.
    var isOpen: Bool { if case .none = stage { false } else { true } }

    /// The decision was taken; `false` if it came too late, or another one did before.
    mutating func decided(_ number: Int) -> Bool {
        guard number == self.number else { return false }
        switch stage {
        case .none, .applying: return false
        case .open: stage = .applying(nil)
        case .completed(let outcome): stage = .applying(outcome)
        }
        return true
    }

    /// The decision was applied.
    mutating func applied() -> Action {
        defer { stage = .none }
        if case .applying(let outcome?) = stage { return .complete(outcome) }
        return .resume
    }

    /// The decision is not needed any more; returns the completion that waited for it, if one did.
    mutating func abandon() -> TransferCompletion? {
        guard case .completed(let outcome) = stage else { return nil }
        stage = .none
        return outcome
    }
}
