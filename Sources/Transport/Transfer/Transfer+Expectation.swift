// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// `Expect: 100-continue` that a user has set (RFC 9110, section 10.1.1). libcurl has this, too, but sends the request again by itself after
// a 417, without its body, and hands both responses over as one: so libcurl is not told, and the wait is ours.

extension Transfer {
    /// How a request with a body stands to the server's consent.
    enum Expectation {
        /// The body is sent without it.
        case none
        /// The request says that it waits; its body has not been asked for yet.
        case stated
        /// The body waits for `100 Continue` or a final response, until then: servers may not know of either.
        case awaited(Nanoseconds)

        /// Whether the body may still have to wait.
        var isOpen: Bool { if case .none = self { false } else { true } }
    }

    /// How long a body waits. As long as libcurl would: a server that knows of the field answers within a round trip.
    private static let longestWait: Nanoseconds = 1_000_000_000

    /// Whether the body is not to be sent yet.
    func mustAwaitContinue() -> Bool {
        switch expectation {
        case .none: return false
        case .stated:
            expectation = .awaited(loop.now + Self.longestWait)
            loop.armTimer(self)
            return true
        case .awaited: return true
        }
    }

    /// Ends the wait for consent and resumes a paused upload.
    ///
    /// Called on a 100, on time-out, and on a final response. After a response that refuses the body libcurl no longer reads it, but does not
    /// complete the transfer while the upload is paused: a body without bytes to give would delay the completion indefinitely.
    func resumeSending() {
        expectation = .none
        if pauses.sendingStopped { loop.resumeSendingLater(self) }
    }
}

extension TransferRequest {
    /// Whether the body is to wait for the server's consent.
    var expectsContinue: Bool {
        body != nil && headers.value(for: "Expect")?.lowercased().contains("100-continue") ?? false
    }
}
