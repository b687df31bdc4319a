// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import Testing

/// The table of rules in the guide on caching names a test for each rule.
@Suite(.timeLimit(.minutes(1))) struct RuleTableTests {
    @Test func `Each rule names tests, and each of them exists`() throws {
        let table = try TestTable(of: "Sources/Curlew/Curlew.docc/Caching.md", under: "The rules")
        #expect(table.rows.count > 60)
        #expect(try table.problems() == [])
    }
}
