// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// `Expect: 100-continue` set by the user (RFC 9110, section 10.1.1). libcurl has its own implementation, but after a 417 it repeats the
// request by itself, without its body, and delivers both responses as one. So the field is hidden from libcurl, and the wait is implemented
// here.

extension Transfer {
    /// The state of a request that expects the server's consent to its body.
    enum Expectation {
        /// The body is sent without consent.
        case none
        /// The request has the field; libcurl has not read its body yet.
        case stated
        /// The body waits for `100 Continue` or a final response until this deadline, because servers need not support either.
        case awaited(Nanoseconds)

        /// Whether the body may still have to wait.
        var isOpen: Bool { if case .none = self { false } else { true } }
    }

    /// How long a body waits: one second, as in libcurl. A server that supports the field responds within a round trip.
    private static let longestWait: Nanoseconds = 1_000_000_000

    /// Whether the body must not be sent yet.
    func mustAwaitContinue() -> Bool {
        switch exchange.expectation {
        case .none: return false
        case .stated:
            exchange.expectation = .awaited(loop.now + Self.longestWait)
            loop.armTimer(self)
            return true
        case .awaited: return true
        }
    }

    /// Ends the wait for consent and resumes a paused upload.
    ///
    /// Called on a 100, on time-out, and on a final response. After a response that refuses the body libcurl no longer reads it, but does
    /// not complete the transfer while the upload is paused: a body without bytes to give would delay the completion indefinitely.
    func resumeSending() {
        exchange.expectation = .none
        if exchange.pauses.sendingStopped { loop.resumeSendingLater(self) }
    }
}

extension TransferRequest {
    /// Whether the body is to wait for the server's consent.
    var expectsContinue: Bool {
        body != nil && headers.value(for: "Expect")?.lowercased().contains("100-continue") ?? false
    }
}
