// SPDX-License-Identifier: Apache-2.0

/// The reason why a command line is invalid, as a phrase.
struct UsageError: Error, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
