// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP

// Sessions, tasks and their delegates hold requests, cookies and credentials: reflection (`dump`, `Mirror`) sees a choice of their parts.

extension SessionManager: CustomReflectable {
    /// The session.
    public var customMirror: Mirror { .redacted(self, ["session": session]) }
}

extension Session: CustomReflectable {
    /// The configuration.
    public var customMirror: Mirror { .redacted(self, ["configuration": configuration]) }
}

extension SessionDelegate: CustomReflectable {
    /// Nothing.
    public var customMirror: Mirror { .redacted(self) }
}

extension SessionTask: CustomReflectable {
    /// Number, state and the request with which the task began.
    public var customMirror: Mirror {
        .redacted(self, ["taskIdentifier": taskIdentifier, "state": state, "request": originalTransfer?.description ?? "none"])
    }
}

extension TaskDelegate: CustomReflectable {
    /// Nothing.
    public var customMirror: Mirror { .redacted(self) }
}
