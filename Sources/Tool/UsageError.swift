// SPDX-License-Identifier: Apache-2.0

/// Why a command line can't be followed, in half a sentence.
struct UsageError: Error, Equatable {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
