// SPDX-License-Identifier: Apache-2.0

/// One thing that the demonstration shows.
protocol Step: Sendable {
    /// What it shows, in a few words.
    var title: String { get }

    /// Does it, says what it does and what came back, and throws when that is not what was to be expected.
    func run(on stage: Stage) async throws
}

/// Something came out otherwise than it should.
struct Unexpected: Error, CustomStringConvertible {
    let description: String
}

/// Says what was found, if it is what was to be expected.
func check(_ condition: Bool, _ finding: String) throws {
    guard condition else { throw Unexpected(description: "not so: \(finding)") }
    Console.say("   ok: \(finding)")
}
