// SPDX-License-Identifier: Apache-2.0

// Names that a release had. Files of this name in other modules have theirs.

extension StreamRequest {
    /// The name in 0.9 of ``waitUntilCompleted()``.
    @available(*, deprecated, renamed: "waitUntilCompleted()")
    public func end() async throws { try await waitUntilCompleted() }
}
