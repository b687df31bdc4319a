// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Sessions, tasks and their delegates hold requests, cookies and credentials, so reflection (`dump`, `Mirror`) shows selected parts only,
// and never the state behind a `Lock`.

extension SessionManager: CustomReflectable {
    /// Shows the session.
    public var customMirror: Mirror { .redacted(self, ["session": session]) }
}

extension Session: CustomReflectable {
    /// Shows the configuration.
    public var customMirror: Mirror { .redacted(self, ["configuration": configuration]) }
}

extension SessionDelegate: CustomReflectable {
    /// Shows nothing.
    public var customMirror: Mirror { .redacted(self) }
}

extension SessionTask: CustomReflectable {
    /// Shows the number, the state and the original request in short.
    public var customMirror: Mirror {
        .redacted(self, ["taskIdentifier": taskIdentifier, "state": state, "request": originalTransfer?.description ?? "none"])
    }
}

extension TaskDelegate: CustomReflectable {
    /// Shows nothing.
    public var customMirror: Mirror { .redacted(self) }
}
