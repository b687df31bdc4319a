// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Foundation
import Testing

@testable import CurlewCookies

@Suite(.timeLimit(.minutes(1))) struct ThreeWayMergeTests {
    private func hosts(_ entries: [String: Double]) -> [String: HSTSHost] {
        entries.reduce(into: [:]) { $0[$1.key] = HSTSHost(host: $1.key, expirationDate: Date(timeIntervalSince1970: $1.value)) }
    }

    @Test(
        "what others have changed counts, else what could not be written",
        arguments: [
            (["a": 1.0], ["a": 1.0], ["a": 1.0], ["a": 1.0]), ([:], ["a": 1.0], [:], ["a": 1.0]), ([:], [:], ["a": 1.0], ["a": 1.0]),
            (["a": 1.0], [:], ["a": 1.0], [:]), (["a": 1.0], ["a": 1.0], [:], [:]), (["a": 1.0], ["a": 2.0], ["a": 1.0], ["a": 2.0]),
            (["a": 1.0], ["a": 1.0], ["a": 2.0], ["a": 2.0]), (["a": 1.0], ["a": 2.0], ["a": 3.0], ["a": 3.0]),
            (["a": 1.0], [:], ["a": 3.0], ["a": 3.0]), (["a": 1.0], ["a": 2.0], [:], [:]), ([:], ["a": 2.0], ["a": 3.0], ["a": 3.0]),
            (["a": 1.0, "b": 1.0], ["a": 2.0, "b": 1.0, "c": 1.0], ["a": 1.0, "d": 1.0], ["a": 2.0, "c": 1.0, "d": 1.0]),
        ] as [([String: Double], [String: Double], [String: Double], [String: Double])])
    func cases(_ base: [String: Double], _ mine: [String: Double], _ theirs: [String: Double], _ expected: [String: Double]) {
        let merged = ThreeWayMerge.merge(base: hosts(base), mine: hosts(mine), theirs: hosts(theirs), in: HSTSTable.self)
        #expect(merged == hosts(expected))
    }
}
