// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Sessions, tasks and their delegates hold requests, cookies and credentials, so reflection (`dump`, `Mirror`) shows selected parts only,
// and never the state behind a `Lock`.

extension SessionManager: RedactedReflectable {
    /// Shows the session.
    package var shownParts: KeyValuePairs<String, Any> { ["session": session] }
}

extension Session: RedactedReflectable {
    /// Shows the configuration.
    package var shownParts: KeyValuePairs<String, Any> { ["configuration": configuration] }
}

extension SessionDelegate: RedactedReflectable {}

extension SessionTask: RedactedReflectable {
    /// Shows the number, the state and the original request in short.
    package var shownParts: KeyValuePairs<String, Any> {
        ["taskIdentifier": taskIdentifier, "state": state, "request": originalTransfer?.description ?? "none"]
    }
}

extension TaskDelegate: RedactedReflectable {}
