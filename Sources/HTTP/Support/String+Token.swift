// SPDX-License-Identifier: Apache-2.0

extension String {
    /// What nothing else has, in no process: a random text for what has an identity, as an address may become another object's.
    package static func makeToken() -> String { "\(UInt64.random(in: 0...UInt64.max)).\(UInt64.random(in: 0...UInt64.max))" }
}
