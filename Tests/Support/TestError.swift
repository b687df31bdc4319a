// SPDX-License-Identifier: Apache-2.0

/// An error thrown by the tests themselves.
public struct TestError: Error, Equatable {
    /// What is wrong.
    public let name: String

    /// Creates an error that says what is wrong.
    public init(_ name: String) {
        self.name = name
    }
}
